//! The status of a ScheduleExplanation, by a copy of the engine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use koord_runtime::{clock::Moment, key::ObjectKey};
use koord_scheduler_engine::{Decision, Engine, Outcome, Refused};
use koord_scheduler_framework::{Query, Reason, cycle::OnNode, pod::Pod};
use koord_types::{
    pod_annotations::QUESTIONED_OBJECT_KEY,
    schedule_explanation::{
        DetailedExplanation, FeasiblePod, NodeFailedDetail, NodePossibleVictims, PossibleVictim,
        ScheduleExplanationStatus, ScheduleResult,
    },
};
use serde_json::Map;

use super::{ExplanationRequest, domains::domains, template::PodMaker};

/// Pods of one explanation.
const PODS_MAX: usize = 256;
/// Nodes that are named for one reason.
const NODES_MAX: usize = 100;
/// Pods whose node is named in one topology domain.
const PODS_OF_DOMAIN_MAX: usize = 16;

/// What is known of one pod.
enum Fate {
    /// It has this node, or would get it.
    Node(Arc<str>),
    /// It has none, and may be nominated to one.
    None { why: String, nomination: Option<(Arc<str>, Vec<Arc<Pod>>)> },
}

/// Computes an explanation by an engine, which is consumed.
pub(super) fn answer(
    mut engine: Engine,
    request: &ExplanationRequest,
    maker: &PodMaker<'_>,
    now: Moment,
    time: Timestamp,
) -> ScheduleExplanationStatus {
    let pods = match &request.template {
        Some(template) => {
            let pod = maker.pod(template, &request.namespace).map_err(|error| error.to_string());
            pod.map(|pod| {
                engine.set_pod(Arc::clone(&pod), now);
                vec![pod]
            })
        }
        None => {
            Ok(pods(&engine, request)).and_then(|pods| if pods.is_empty() { Err(no_pods(request)) } else { Ok(pods) })
        }
    };
    let mut status = match pods {
        Ok(pods) => explained(&engine, &pods, now),
        Err(failed_message) => ScheduleExplanationStatus { failed_message, ..ScheduleExplanationStatus::default() },
    };
    status.last_update_time = Some(time.into());
    status
}

fn no_pods(ExplanationRequest { namespace, key, .. }: &ExplanationRequest) -> String {
    if key.is_empty() {
        return "spec asks nothing; name a pod, a gang or a label in questionObjectKey, or write questionObjectTemplate"
            .to_owned();
    }
    format!(
        "there is neither a pod {key} in namespace {namespace}, nor a gang, nor a pod with the label {}={key}",
        QUESTIONED_OBJECT_KEY.name()
    )
}

/// The pods that an explanation names: by their label, by name, or as members of a gang. Pods of other namespaces are left out.
fn pods(engine: &Engine, ExplanationRequest { namespace, key, .. }: &ExplanationRequest) -> Vec<Arc<Pod>> {
    let cluster = engine.cluster();
    let namespace_pods = || {
        let all = cluster.pods().map(|placed| &placed.pod).chain(cluster.pending());
        all.filter(|pod| pod.key.namespace() == namespace && !pod.is_reservation())
    };
    let name = key.strip_prefix(&format!("{namespace}/")).unwrap_or(key);
    let labelled = namespace_pods().filter(|pod| pod.template.labels.get(QUESTIONED_OBJECT_KEY.name()) == Some(key));
    let mut found: Vec<Arc<Pod>> = labelled.take(PODS_MAX).cloned().collect();
    if found.is_empty() {
        found.extend(namespace_pods().find(|pod| pod.key.name() == name).cloned());
    }
    if found.is_empty() {
        let members = members(engine, &ObjectKey::new(namespace, name));
        found.extend(namespace_pods().filter(|pod| members.contains(pod.key.as_str())).take(PODS_MAX).cloned());
    }
    found.sort_by(|one, other| one.key.cmp(&other.key));
    found
}

/// The pods of a gang.
fn members(engine: &Engine, gang: &ObjectKey) -> BTreeSet<String> {
    let mut plugins = engine.profiles().flat_map(|profile| &profile.plugins);
    let path = ["gang", gang.namespace(), gang.name()];
    let summary = plugins.find_map(|plugin| {
        let endpoint = plugin.service_endpoint.as_ref()?;
        let serves = endpoint.paths().contains(&"gang/:namespace/:name");
        serves.then(|| endpoint.serve(&path, &Query::default(), engine.cluster()).ok())
    });
    let summary = summary.flatten().unwrap_or_default();
    summary["children"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
}

/// What becomes of pods in the whole cluster; of a gang that finds no place together also what would in each domain of its network.
fn explained(engine: &Engine, pods: &[Arc<Pod>], now: Moment) -> ScheduleExplanationStatus {
    let whole = explanation(engine, pods, String::new(), now);
    let domains = if whole.schedulable { Vec::new() } else { domains(engine, pods) };
    let by_domain = domains.into_iter().map(|domain| {
        let mut explanation = explanation(&domain.alone(engine, now), pods, domain.name, now);
        let results = [&mut explanation.schedule_explanation, &mut explanation.preempt_explanation];
        for result in results.into_iter().flatten() {
            result.feasible_scheduling_result.truncate(PODS_OF_DOMAIN_MAX);
        }
        explanation
    });
    ScheduleExplanationStatus {
        schedulable: whole.schedulable,
        schedulable_after_preemption: whole.schedulable_after_preemption,
        failed_message: whole.failed_message.clone(),
        detailed_explanation: std::iter::once(whole).chain(by_domain).collect(),
        last_update_time: None,
    }
}

fn explanation(engine: &Engine, pods: &[Arc<Pod>], topology_domain: String, now: Moment) -> DetailedExplanation {
    let uids: Vec<_> = pods.iter().map(|pod| pod.uid.clone()).collect();
    let outcomes = engine.copy().would_all(&uids, now);
    let fates: Vec<(&Arc<Pod>, Fate)> =
        pods.iter().map(|pod| (pod, fate(engine, pod, outcomes.get(&pod.uid), now))).collect();
    let failed = fates.iter().filter_map(|(pod, fate)| match fate {
        Fate::Node(_) => None,
        Fate::None { why, .. } => {
            Some((*pod, if pods.len() > 1 { format!("{}: {why}", pod.key) } else { why.clone() }))
        }
    });
    // A member of a gang that was tried says more than one that waits for that one's turn.
    let failed = failed.min_by_key(|(pod, _)| !outcomes.contains_key(&pod.uid));
    let feasible = |fate: &Fate| match fate {
        Fate::Node(node) => Some(Arc::clone(node)),
        Fate::None { .. } => None,
    };
    let with_nomination = |fate: &Fate| match fate {
        Fate::Node(node) | Fate::None { nomination: Some((node, _)), .. } => Some(Arc::clone(node)),
        Fate::None { nomination: None, .. } => None,
    };
    let failed_message = failed.as_ref().map(|(_, message)| message.clone()).unwrap_or_default();
    let mut without = result(&fates, feasible, &failed_message);
    if let Some((pod, _)) = failed {
        let decision = engine.copy().why(&pod.uid, now).and_then(|why| why.decision.ok());
        without.node_failed_details = decision.map(|decision| details(&decision.nodes)).unwrap_or_default();
        without.sort();
    }
    let preempting = (!without.schedulable).then(|| result(&fates, with_nomination, &failed_message));
    DetailedExplanation {
        topology_domain,
        schedulable: without.schedulable,
        schedulable_after_preemption: preempting.as_ref().is_some_and(|result| result.schedulable),
        failed_message,
        schedule_explanation: Some(without),
        preempt_explanation: preempting,
        node_possible_victims: victims(&fates),
    }
}

/// What becomes of a pod by the outcome of an attempt; none for one that has its node or is not tried.
fn fate(engine: &Engine, pod: &Pod, outcome: Option<&Outcome>, now: Moment) -> Fate {
    let cluster = engine.cluster();
    if let Some(node) = cluster.pod(&pod.uid).and_then(|placed| cluster.node(placed.row)) {
        return Fate::Node(Arc::clone(&node.name));
    }
    match outcome {
        Some(Outcome::Bind { node, .. }) => Fate::Node(Arc::clone(node)),
        Some(Outcome::Waiting { node }) => {
            let why = format!("it would take its place on {node} and wait there for the others of its gang");
            Fate::None { why, nomination: None }
        }
        Some(Outcome::Refused(Refused { message, nominated, victims, .. })) => {
            Fate::None { why: message.clone(), nomination: nominated.clone().map(|node| (node, victims.clone())) }
        }
        Some(Outcome::ExtenderCall { .. }) => {
            Fate::None { why: "extenders are asked before it is placed".to_owned(), nomination: None }
        }
        None => Fate::None { why: held(engine, pod, now), nomination: None },
    }
}

/// Why a pod is not tried.
fn held(engine: &Engine, pod: &Pod, now: Moment) -> String {
    match engine.copy().why(&pod.uid, now).map(|why| why.decision) {
        Some(Err(reason)) => format!("it is left to another scheduler: {reason} [{}]", reason.code),
        Some(Ok(Decision { held: Some((plugin, reason)), .. })) => format!("{plugin}: {reason} [{}]", reason.code),
        Some(Ok(Decision { held: None, .. })) | None => "it is not tried".to_owned(),
    }
}

fn result(fates: &[(&Arc<Pod>, Fate)], node: impl Fn(&Fate) -> Option<Arc<str>>, failed: &str) -> ScheduleResult {
    let feasible = fates.iter().filter_map(|(pod, fate)| {
        let node_name = node(fate)?.to_string();
        let (namespace, name) = (pod.key.namespace().to_owned(), pod.key.name().to_owned());
        Some(FeasiblePod { namespace, name, uid: pod.uid.to_string(), node_name })
    });
    let feasible: Vec<FeasiblePod> = feasible.collect();
    let schedulable = feasible.len() == fates.len();
    ScheduleResult {
        schedulable,
        failed_message: if schedulable { String::new() } else { failed.to_owned() },
        feasible_scheduling_result: feasible,
        node_failed_details: Vec::new(),
    }
}

/// The nodes that are refused, by the first plugin that refuses them and its reasons with their codes.
fn details(nodes: &[OnNode]) -> Vec<NodeFailedDetail> {
    let mut groups = BTreeMap::<(&str, String, bool), Vec<String>>::new();
    for (node, first) in nodes.iter().filter_map(|node| Some((node, node.refusals.first()?))) {
        let coded = |reason: &Reason| format!("{reason} [{}]", reason.code);
        let reason = first.reasons.iter().map(coded).collect::<Vec<_>>().join(", ");
        groups.entry((first.plugin, reason, first.resolvable)).or_default().push(node.node.to_string());
    }
    let detail = |((plugin, reason, preempt_might_help), mut failed_nodes): ((&str, String, bool), Vec<String>)| {
        failed_nodes.sort();
        failed_nodes.truncate(NODES_MAX);
        NodeFailedDetail { failed_plugin: plugin.to_owned(), reason, preempt_might_help, failed_nodes }
    };
    groups.into_iter().map(detail).collect()
}

fn victims(fates: &[(&Arc<Pod>, Fate)]) -> Vec<NodePossibleVictims> {
    let nominations = fates.iter().filter_map(|(_, fate)| match fate {
        Fate::None { nomination: Some(nomination), .. } => Some(nomination),
        Fate::Node(_) | Fate::None { nomination: None, .. } => None,
    });
    let victim = |pod: &Arc<Pod>| PossibleVictim {
        namespace: pod.key.namespace().to_owned(),
        name: pod.key.name().to_owned(),
        uid: pod.uid.to_string(),
        is_nominated_pod: pod.node.is_none(),
    };
    let nominations = nominations.filter(|(_, victims)| !victims.is_empty());
    nominations
        .map(|(node, victims)| NodePossibleVictims {
            node_name: node.to_string(),
            possible_victims: victims.iter().map(victim).collect(),
        })
        .collect()
}
