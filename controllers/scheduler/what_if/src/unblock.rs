//! The smallest changes with which a pod that waits would be placed. Each is tried on a copy of the engine before it is said.
//!
//! Candidates come from the refusals: for every node the changes that may make the plugins accept it, for a quota more of it, for a
//! gang more members. Those of one change go first; of several amounts the one that gives up least. What need not be changed, but ends at
//! some time, comes after them.

mod change;
mod deadline;
mod ended;
mod found;
mod gang;
mod on_node;
mod quota;
mod requests;
mod search;
mod trials;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use koord_resource::controller::ResourceKind;
use koord_runtime::key::ObjectKey;
use koord_scheduler_engine::{Decision, Engine, Outcome, Why};
use koord_scheduler_framework::{cycle::OnNode, pod::Pod};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};
use serde_json::{Value, json};

pub use self::found::{Unblock, Unblocked};
use self::{
    change::Change,
    ended::{Ends, ends},
    on_node::Refusal,
    requests::Subject,
    trials::{Placement, Trials},
};
use crate::Objects;

/// Answers that are given.
const ANSWERS_MAX: usize = 5;
/// Trials for one pod.
const TRIALS_MAX: u32 = 120;
/// Combinations of candidates that are tried.
const COMBINATIONS_MAX: usize = 24;
/// Changes that are made together.
const TOGETHER_MAX: usize = 4;
/// Nodes whose double is tried, and nodes whose thresholds are.
const NODES_MAX: usize = 3;

/// Changes that may help together.
struct Combination {
    changes: Vec<Change>,
    nodes: usize,
}

/// What would unblock a pod that waits: at most five changes, and then at most two ends of others.
pub async fn unblock(engine: &Engine, objects: &mut Objects, why: &Why) -> Result<Unblocked> {
    let Ok(decision) = &why.decision else { return Ok(Unblocked::default()) };
    let Some(subject) = subject(&why.pod, objects).await? else { return Ok(Unblocked::default()) };
    let (mut answers, is_short) = {
        let trials = Trials::of(engine, objects, why.pod.uid.clone(), TRIALS_MAX);
        let mut search = Search { engine, subject, pod: &why.pod, decision, trials, answers: Vec::new() };
        search.run().await?;
        (search.answers, search.trials.is_short())
    };
    let Ends { answers: by_end, limit } = ends(engine, objects, &why.pod, decision, is_about_gang(decision)).await?;
    answers.extend(by_end);
    let short = is_short.then(|| format!("not all changes were tried: at most {TRIALS_MAX} are for one pod"));
    Ok(Unblocked { answers, limits: short.into_iter().chain(limit).collect() })
}

/// Whether a pod waits for others of its gang, with which it is placed.
fn is_about_gang(decision: &Decision) -> bool {
    let is_held = matches!(decision.held, Some(("Coscheduling", _)));
    is_held || matches!(decision.outcome, Some(Outcome::Waiting { .. }))
}

/// The pod, or the Reservation of a reserve pod.
async fn subject(pod: &Pod, objects: &mut Objects) -> Result<Option<Subject>> {
    let (kind, key, prefix) = match &pod.reservation {
        Some(object) => (object.kind, object.key.clone(), "/spec/template"),
        None => (ResourceKind::POD, pod.key.clone(), ""),
    };
    let object = objects.get(kind, &key).await?;
    Ok(object.and_then(|object| object.pointer(prefix).cloned()).map(|pod| Subject { kind, key, prefix, pod }))
}

struct Search<'a> {
    engine: &'a Engine,
    subject: Subject,
    pod: &'a Pod,
    decision: &'a Decision,
    trials: Trials<'a>,
    answers: Vec<Unblock>,
}

impl Search<'_> {
    async fn run(&mut self) -> Result<()> {
        if is_about_gang(self.decision) {
            return self.gang().await;
        }
        for Combination { changes, nodes } in self.combinations() {
            let is_more =
                |known: &Unblock| known.changes.iter().all(|one| changes.iter().any(|other| one.is_like(other)));
            if !self.is_full() && !self.answers.iter().any(is_more) {
                let placement = self.trials.placement(&changes.iter().collect::<Vec<_>>()).await?;
                self.answer(changes, placement, nodes);
            }
        }
        if self.decision.held.is_none() {
            self.amounts().await?;
            self.nodes().await?;
        }
        Ok(())
    }

    /// A gang is placed whole: what its members are tried for is its turn in the queue.
    async fn gang(&mut self) -> Result<()> {
        self.trials.in_turn = true;
        if self.trials.placement(&[]).await?.is_some() {
            return Ok(());
        }
        let reason = self.decision.held.as_ref().map_or("", |(_, reason)| &reason.text);
        for change in gang::completed(&self.subject, reason) {
            let placement = self.trials.placement(&[&change]).await?;
            self.answer(vec![change], placement, 1);
        }
        if self.answers.is_empty() {
            for change in gang::smaller(self.engine, self.pod) {
                let placement = self.trials.placement(&[&change]).await?;
                let is_placed = placement.is_some();
                self.answer(vec![change], placement, 1);
                if is_placed {
                    break;
                }
            }
            self.nodes().await?;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.answers.len() >= ANSWERS_MAX
    }

    fn answer(&mut self, changes: Vec<Change>, placement: Option<Placement>, nodes: usize) {
        if let Some(placement) = placement.filter(|_| !self.is_full()) {
            self.answers.push(Unblock { changes, placement, nodes });
        }
    }

    fn found(&mut self, found: Option<(Change, Placement)>) {
        if let Some((change, placement)) = found {
            self.answer(vec![change], Some(placement), 1);
        }
    }

    /// The combinations to be tried, in order: fewer changes first, then the least loss, then most nodes.
    fn combinations(&self) -> Vec<Combination> {
        let mut best = BTreeMap::<String, Combination>::new();
        let of_pod = self.of_pod();
        for on in self.of_nodes() {
            for base in &of_pod {
                // What is against the pod as a whole and against a node may have one remedy.
                let further = on.iter().filter(|change| !base.contains(change));
                let changes: Vec<Change> = base.iter().chain(further).cloned().collect();
                if changes.is_empty() || changes.len() > TOGETHER_MAX {
                    continue;
                }
                let kinds = signature(&changes);
                match best.get_mut(&kinds) {
                    Some(known) => {
                        known.nodes += 1;
                        if loss(&changes) < loss(&known.changes) {
                            known.changes = changes;
                        }
                    }
                    None => _ = best.insert(kinds, Combination { changes, nodes: 1 }),
                }
            }
        }
        let mut all: Vec<Combination> = best.into_values().collect();
        all.sort_by_key(|one| (one.changes.len(), loss(&one.changes), std::cmp::Reverse(one.nodes)));
        all.truncate(COMBINATIONS_MAX);
        all
    }

    /// What may help against what concerns no single node; nothing of it where there is nothing of that.
    fn of_pod(&self) -> Vec<Vec<Change>> {
        let gates = match &self.decision.held {
            Some(("SchedulingGates", _)) => {
                let names: Vec<&str> = self.pod.gates.iter().map(|gate| &**gate).collect();
                let text = format!("its scheduling gate {} were removed", names.join(" and "));
                Some(Change::of("schedulingGate", text, vec![self.subject.edit("/spec/schedulingGates", Value::Null)]))
            }
            Some(_) => return Vec::new(),
            None => None,
        };
        let Some((plugin, rejection)) = &self.decision.rejected else { return vec![gates.into_iter().collect()] };
        let changes = match *plugin {
            "ElasticQuota" => quota::larger(self.engine, &self.pod.template.requests, &rejection.message()),
            plugin => {
                let remedies = self.any_node().map(|refusal| refusal.remedies(plugin)).unwrap_or_default();
                remedies.into_iter().map(|remedy| vec![remedy]).collect()
            }
        };
        changes.into_iter().map(|changes| gates.iter().cloned().chain(changes).collect()).collect()
    }

    fn any_node(&self) -> Option<Refusal<'_>> {
        let (_, node) = self.engine.cluster().rows().next()?;
        self.refusal(&node.name)
    }

    /// For each node the changes that may make it acceptable; nothing where a node takes the pod already.
    fn of_nodes(&self) -> Vec<Vec<Change>> {
        if self.decision.nodes.iter().any(|on| on.refusals.is_empty()) {
            return vec![Vec::new()];
        }
        self.decision.nodes.iter().flat_map(|on| self.of_node(on)).collect()
    }

    fn of_node(&self, on: &OnNode) -> Vec<Vec<Change>> {
        let Some(refusal) = self.refusal(&on.node) else { return Vec::new() };
        let mut sets = vec![Vec::new()];
        // What a cordon adds to the taints goes with it.
        let counts = |plugin: &str| !(plugin == "TaintToleration" && refusal.is_only_cordoned());
        for refused in on.refusals.iter().filter(|refused| counts(refused.plugin)) {
            let remedies = refusal.remedies(refused.plugin);
            let extended = sets.iter().flat_map(|set: &Vec<Change>| {
                remedies.iter().map(|remedy| set.iter().cloned().chain([remedy.clone()]).collect())
            });
            sets = extended.take(4).collect();
        }
        sets
    }

    fn refusal(&self, node: &str) -> Option<Refusal<'_>> {
        let cluster = self.engine.cluster();
        let row = cluster.row(node)?;
        Some(Refusal { cluster, subject: &self.subject, pod: self.pod, node: cluster.node(row)?, row })
    }

    /// Plugins that refuse a node, or the pod.
    fn refusing(&self) -> BTreeSet<&'static str> {
        let of_nodes = self.decision.nodes.iter().flat_map(|on| on.refusals.iter().map(|refusal| refusal.plugin));
        of_nodes.chain(self.decision.rejected.iter().map(|(plugin, _)| *plugin)).collect()
    }

    /// Amounts that have to be searched for.
    async fn amounts(&mut self) -> Result<()> {
        let refusing = self.refusing();
        let (devices, others): (Vec<_>, Vec<_>) = self
            .pod
            .template
            .requests
            .iter()
            .map(|(name, amount)| (name.to_owned(), koord_scheduling::count(name, amount)))
            .filter(|(_, amount)| *amount > 0)
            .partition(|(name, _)| is_of_device(name));
        if refusing.contains("DeviceShare") && !self.is_full() {
            let found = search::fewer_devices(&mut self.trials, &self.subject, &devices).await?;
            self.found(found);
        }
        if refusing.contains("NodeResourcesFit") && self.answers.is_empty() {
            self.without_unoffered(&devices).await?;
        }
        let by_amount = ["NodeResourcesFit", "LoadAwareScheduling", "NodeNUMAResource", "ElasticQuota"];
        for (name, now) in others {
            let is_known = self.answers.iter().flat_map(|known| &known.changes).any(|change| change.kind == "request");
            if !is_known && !self.is_full() && by_amount.iter().any(|plugin| refusing.contains(plugin)) {
                let found = search::largest_request(&mut self.trials, &self.subject, &name, now).await?;
                self.found(found);
            }
        }
        let constraints = self.subject.pod["spec"]["topologySpreadConstraints"].as_array().map_or(0, Vec::len);
        for index in 0..constraints {
            if refusing.contains("PodTopologySpread") && !self.is_full() {
                let found = search::wider_skew(&mut self.trials, &self.subject, index).await?;
                self.found(found);
            }
        }
        let decision = self.decision;
        let loaded = decision.nodes.iter().filter_map(|on| match &on.refusals[..] {
            [only] if only.plugin == "LoadAwareScheduling" => Some((on, only.reasons.first()?)),
            _ => None,
        });
        for (on, reason) in loaded.take(NODES_MAX) {
            let resource = reason.operand("resource");
            let is_known =
                self.answers.iter().any(|known| known.changes.iter().any(|one| one.kind == "usageThreshold"));
            let cluster = self.engine.cluster();
            let (Some(resource), Some(row), false, false) = (resource, cluster.row(&on.node), is_known, self.is_full())
            else {
                continue;
            };
            let Some(node) = cluster.node(row) else { continue };
            let refusal = Refusal { cluster, subject: &self.subject, pod: self.pod, node, row };
            let found = search::higher_threshold(&mut self.trials, &refusal, resource).await?;
            self.found(found);
        }
        Ok(())
    }

    /// Nothing of the resources that no node offers.
    async fn without_unoffered(&mut self, requests: &[(String, i64)]) -> Result<()> {
        let nodes = || self.engine.cluster().rows().map(|(_, node)| node);
        let is_offered = |name: &str| nodes().any(|node| node.allocatable.amount(name).signum() > 0);
        let unoffered: Vec<&(String, i64)> = requests.iter().filter(|(name, _)| !is_offered(name)).collect();
        let names: Vec<&str> = unoffered.iter().map(|(name, _)| &**name).collect();
        let text = format!("it did not request {}, of which no node offers any", names.join(", "));
        let dropped = unoffered.iter().filter_map(|(name, now)| self.subject.requesting(name, *now, 0));
        if let Some(change) = dropped.reduce(|one, other| on_node::joined(one, &other)) {
            let change = Change { text, ..change };
            let placement = self.trials.placement(&[&change]).await?;
            self.answer(vec![change], placement, 1);
        }
        Ok(())
    }

    /// A further node like one that there is, with nothing on it.
    async fn nodes(&mut self) -> Result<()> {
        let cluster = self.engine.cluster();
        let mut shapes = BTreeMap::new();
        // Where evictions do not help, an empty node of that kind is no better.
        let may_help = self.decision.nodes.iter().filter(|on| on.refusals.iter().all(|refusal| refusal.resolvable));
        let rows = may_help.filter_map(|on| cluster.row(&on.node));
        for (row, node) in rows.filter_map(|row| Some((row, cluster.node(row)?))) {
            let text = |amounts: &koord_resource::ResourceList| {
                amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
            };
            shapes.entry(text(&node.allocatable)).or_insert((
                std::cmp::Reverse(cluster.allocatable(koord_scheduling::ResourceId::CPU, row)),
                &node.name,
            ));
        }
        let mut shapes: Vec<_> = shapes.into_values().collect();
        shapes.sort();
        for (_, name) in shapes.into_iter().take(NODES_MAX) {
            if self.is_full() {
                return Ok(());
            }
            let Some(change) = self.another(name).await? else { continue };
            let placement = self.trials.placement(&[&change]).await?;
            let is_placed = placement.is_some();
            self.answer(vec![change], placement, 1);
            if is_placed {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Another node like this one, with its devices.
    async fn another(&mut self, name: &str) -> Result<Option<Change>> {
        let double = format!("{name}-like");
        let mut added = Vec::new();
        for kind in [ResourceKind::NODE, ResourceKind::typed::<Device>(), ResourceKind::typed::<NodeResourceTopology>()]
        {
            let object = self.trials.objects.get(kind, &ObjectKey::cluster(name)).await;
            // A kind that is not installed has no objects.
            if let Some(mut object) = object.ok().flatten() {
                object["metadata"]["name"] = json!(double);
                object["metadata"]["uid"] = json!(double);
                if !object["metadata"]["labels"]["kubernetes.io/hostname"].is_null() {
                    object["metadata"]["labels"]["kubernetes.io/hostname"] = json!(double);
                }
                added.push(object);
            }
        }
        let text = format!("there were another node like {name}, with nothing on it");
        Ok((!added.is_empty()).then(|| Change { added, ..Change::of("node", text, Vec::new()) }))
    }
}

fn is_of_device(resource: &str) -> bool {
    let domain = resource.split_once('/').map_or("", |(domain, _)| domain);
    !matches!(domain, "" | "kubernetes.io")
}

/// What distinguishes changes beside nodes and amounts.
fn signature(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{} {}", change.kind, change.detail)).collect::<Vec<_>>().join("\n")
}

fn loss(changes: &[Change]) -> i64 {
    changes.iter().map(|change| change.loss).sum()
}
