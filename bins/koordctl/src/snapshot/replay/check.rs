//! The pods that have nodes in a snapshot: each is decided anew, beside those that were created before it, where they are.

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;
use koord_program::{gates::Gates, plan::Source};
use koord_runtime::{clock::Moment, uid::Uid};
use koord_scheduler_assembly::{Configuration, amend, snapshot, transformers};
use koord_scheduler_engine::{Engine, Outcome, Why};
use koord_scheduler_framework::{Reason, cycle::OnNode};
use serde_json::Value;

use super::{Decision, Replay, Replayed, is_over, node_of, scheduler_of};

/// What schedulers and nodes write into a pod.
const WRITTEN: [&str; 3] = [
    "scheduling.koordinator.sh/resource-status",
    "scheduling.koordinator.sh/device-allocated",
    "scheduling.koordinator.sh/reservation-allocated",
];

/// Annotations of pods that no scheduler has placed.
const STATIC: &str = "kubernetes.io/config.mirror";

pub(super) async fn replay(
    mut objects: Vec<Value>,
    configurations: Vec<(String, Configuration, Gates)>,
    at: Timestamp,
) -> Result<Replay> {
    objects.iter_mut().for_each(crate::why::identify);
    // Pods that wait take no part: they came to nothing.
    objects.retain(|object| object["kind"] != "Pod" || node_of(object).is_some());
    let names = configurations.iter().map(|(name, ..)| name.clone()).collect();
    let mut pods: Vec<Replayed> = Vec::new();
    for (_, configuration, gates) in configurations {
        let decided = decide(&objects, &configuration, gates, at).await?;
        if pods.is_empty() {
            pods = decided;
            continue;
        }
        // A pod that only some configurations are responsible for is compared where they are.
        for one in decided {
            match pods.iter_mut().find(|known| known.pod == one.pod) {
                Some(known) => {
                    known.differs |= one.differs;
                    known.decisions.extend(one.decisions);
                }
                None => pods.push(one),
            }
        }
    }
    Ok(Replay { at, is_check: true, configurations: names, pods, evicted: Vec::new(), left_out: 0 })
}

async fn decide(
    objects: &[Value],
    configuration: &Configuration,
    gates: Gates,
    at: Timestamp,
) -> Result<Vec<Replayed>> {
    let is_ours = |pod: &Value| {
        let mut profiles = configuration.profiles().iter();
        let is_static = !pod["metadata"]["annotations"][STATIC].is_null();
        let has_profile = profiles.any(|profile| profile.scheduler_name == scheduler_of(pod));
        pod["kind"] == "Pod" && has_profile && !is_over(pod) && !is_static
    };
    let (transformers, without) =
        (transformers(&gates), |object: &Value| if is_ours(object) { taken_out(object) } else { object.clone() });
    let source = Source::Files(objects.iter().map(without).collect());
    let mut engine = snapshot(configuration, &gates, source, at).await?;
    let mut decided = Vec::new();
    for pod in objects.iter().filter(|object| is_ours(object)) {
        decided.push(again(&engine, pod)?);
        amend(&mut engine, vec![pod.clone()], transformers).await?;
    }
    if decided.is_empty() {
        let profiles: Vec<&str> = configuration.profiles().iter().map(|profile| &*profile.scheduler_name).collect();
        bail!("no pod of {} has a node in the snapshot; there is nothing to check", profiles.join(", "));
    }
    Ok(decided)
}

/// A pod as it was before it was placed.
fn taken_out(pod: &Value) -> Value {
    let mut pod = pod.clone();
    for (part, field) in [("spec", "nodeName"), ("", "status")] {
        let part = if part.is_empty() { Some(&mut pod) } else { pod.get_mut(part) };
        part.and_then(Value::as_object_mut).and_then(|members| members.remove(field));
    }
    if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| !WRITTEN.contains(&key.as_str()));
    }
    pod
}

fn again(engine: &Engine, pod: &Value) -> Result<Replayed> {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    let namespace = if text("namespace").is_empty() { "default" } else { text("namespace") };
    let name = format!("{namespace}/{}", text("name"));
    let node = node_of(pod).unwrap_or_default();
    let uid = Uid::from(text("uid"));
    let why = engine
        .copy()
        .why(&uid, Moment::default())
        .ok_or_else(|| anyhow!("pod {name} cannot be read; koordctl lint -f says what is wrong with it"))?;
    let decision = decision(&why, node);
    let differs = decision.node.as_deref() != Some(node);
    Ok(Replayed { pod: name, node: Some(node.to_owned()), decisions: vec![decision], differs })
}

/// What is decided now about a pod that is on this node.
fn decision(why: &Why, node: &str) -> Decision {
    let waits = |plugin: Option<&str>, words: String| Decision {
        node: None,
        plugins: plugin.map(str::to_owned).into_iter().collect(),
        words: Some(words),
    };
    let Ok(decision) = &why.decision else { return waits(None, "left to another scheduler".to_owned()) };
    if let Some((plugin, reason)) = &decision.held {
        return waits(Some(plugin), reason.to_string());
    }
    if let Some((plugin, rejection)) = &decision.rejected {
        return waits(Some(plugin), rejection.message());
    }
    let here = decision.nodes.iter().find(|one| &*one.node == node);
    let best = decision.nodes.iter().filter_map(OnNode::total).max();
    let total = here.and_then(OnNode::total);
    let stays = || Decision { node: Some(node.to_owned()), plugins: Vec::new(), words: None };
    if total.is_some() && total == best {
        return stays();
    }
    let (chosen, refused) = match &decision.outcome {
        Some(Outcome::Bind { node, .. } | Outcome::Waiting { node }) => (Some(node.to_string()), None),
        Some(Outcome::Refused(refused)) => (None, Some(refused.message.clone())),
        Some(Outcome::ExtenderCall { .. }) | None => (None, None),
    };
    if chosen.as_deref() == Some(node) {
        return stays();
    }
    let (plugin, words) = match (here, total, best) {
        (None, ..) => (None, format!("there is no node {node}")),
        (Some(_), Some(total), Some(best)) => (None, format!("{node} has the score {total}, the best {best}")),
        (Some(here), ..) => {
            let first = here.refusals.first();
            let words = first.map(|first| Reason::joined(&first.reasons)).unwrap_or_default();
            (first.map(|first| first.plugin), format!("{node} is refused: {words}"))
        }
    };
    let words = refused.filter(|_| chosen.is_none()).unwrap_or(words);
    Decision { node: chosen, plugins: plugin.map(str::to_owned).into_iter().collect(), words: Some(words) }
}
