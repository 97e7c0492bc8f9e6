//! The queue as people see it: where a pod stands, since when, who refused it, and what it waits for.

use std::{collections::BTreeMap, time::Duration};

use koord_runtime::clock::Moment;
use koord_scheduler_engine::{
    Engine,
    queue::{Depths, Standing, Stands},
};
use koord_scheduler_framework::{Profile, Query, Registration, cluster::Cluster, event::Events, pod::Pod};
use serde_json::{Value, json};

/// Pods that one answer shows.
const SHOWN_MAX: usize = 1000;

/// Events by the names that kube-scheduler has for them. Those of objects are named by the kinds that a plugin reads.
const EVENTS: [(Events, &str); 9] = [
    (Events::NODE_ADDED, "Node/Add"),
    (Events::NODE_ALLOCATABLE, "Node/UpdateNodeAllocatable"),
    (Events::NODE_LABELS, "Node/UpdateNodeLabel"),
    (Events::NODE_TAINTS, "Node/UpdateNodeTaint"),
    (Events::POD_ASSIGNED, "AssignedPod/Add"),
    (Events::POD_REMOVED, "AssignedPod/Delete"),
    (Events::POD_SCALED_DOWN, "AssignedPod/UpdatePodScaleDown"),
    (Events::POD_LABELS, "AssignedPod/UpdatePodLabel"),
    (Events::POD_CHANGED, "UnscheduledPod/Update"),
];

/// The whole queue, in the order in which pods would be tried.
pub(super) fn list(engine: &Engine, now: Moment) -> Value {
    let Depths { active, backoff, parked, gated } = engine.queue().depths();
    let standings = engine.queue().standings();
    let shown = standings.iter().take(SHOWN_MAX).map(|standing| entry(engine, standing, now));
    json!({
        "active": active, "backoff": backoff, "unschedulable": parked, "gated": gated,
        "inFlight": standings.iter().filter(|standing| standing.stands == Stands::InFlight).count(),
        "pods": shown.collect::<Vec<_>>(), "notShown": standings.len().saturating_sub(SHOWN_MAX),
    })
}

/// One pod, with the words of who holds it back and its gang; none where it does not wait.
pub(super) fn pod(engine: &Engine, namespace: &str, name: &str, now: Moment) -> Option<Value> {
    let standings = engine.queue().standings();
    let is_it = |pod: &Pod| pod.key.namespace() == namespace && pod.key.name() == name;
    let standing = standings.iter().find(|standing| is_it(standing.pod))?;
    let mut entry = entry(engine, standing, now);
    let cluster = engine.cluster();
    let profile = profile(engine, standing.pod);
    let plugins = || profile.into_iter().flat_map(|profile| &profile.plugins);
    let held = plugins().find_map(|plugin| plugin.pre_enqueue.as_ref()?.pre_enqueue(standing.pod, cluster).err());
    entry["reason"] = held.as_ref().map_or(Value::Null, |reason| json!(reason.text));
    entry["code"] = held.map_or(Value::Null, |reason| json!(reason.code.as_str()));
    entry["gang"] = plugins().find_map(|plugin| gang(plugin, standing.pod, cluster)).unwrap_or_default();
    let nominated = cluster.nomination(&standing.pod.uid).and_then(|row| cluster.node(row));
    entry["nominatedNode"] = nominated.map_or(Value::Null, |node| json!(node.name));
    Some(entry)
}

fn entry(engine: &Engine, standing: &Standing<'_>, now: Moment) -> Value {
    let Standing { pod, stands, before, tried, since, until, stopped_by } = standing;
    let profile = profile(engine, pod);
    let names = |index: u8| profile.and_then(|profile| profile.plugins.get(usize::from(index)));
    let plugins: Vec<_> = stopped_by.iter().filter_map(names).collect();
    let stands = match stands {
        Stands::InFlight if engine.waiting().any(|waiting| waiting.uid == pod.uid) => "waitingInPlace",
        Stands::InFlight => "inFlight",
        Stands::Active => "active",
        Stands::Backoff => "backoff",
        Stands::Unschedulable => "unschedulable",
        Stands::Gated => "gated",
    };
    let seconds = |span: Duration| json!(span.as_millis() as f64 / 1000.0);
    let left = until.map(|until| until.since(now));
    let until = left.and_then(|left| engine.cluster().time().checked_add(left).ok());
    let mut wakes: Vec<String> = plugins.iter().flat_map(|plugin| wakes(plugin)).collect();
    wakes.sort();
    wakes.dedup();
    json!({
        "pod": pod.key.to_string(), "reservation": pod.reservation.as_ref().map(|object| object.key.name()), "queue": stands, "position": before + 1, "priority": pod.template.priority,
        "scheduler": pod.template.scheduler, "attempts": tried.attempts, "refusals": tried.refusals, "errors": tried.errors,
        "waitingSeconds": since.map(|since| seconds(now.since(since))),
        "backoffSeconds": left.map(seconds), "backoffUntil": until.map(|until| until.to_string()),
        "plugins": plugins.iter().map(|plugin| plugin.name()).collect::<Vec<_>>(), "wakesOn": wakes,
    })
}

/// The events after which a pod that this plugin refused may be tried again.
fn wakes(plugin: &Registration) -> Vec<String> {
    let events = plugin.events();
    let named = EVENTS.iter().filter(|(event, _)| events.meets(*event)).map(|(_, name)| (*name).to_owned());
    let read = plugin.reads.iter().filter(|_| events.meets(Events::OBJECTS));
    named.chain(read.map(|kind| format!("{}/*", kind.kind))).collect()
}

fn profile<'e>(engine: &'e Engine, pod: &Pod) -> Option<&'e Profile> {
    engine.profiles().find(|profile| profile.scheduler == pod.template.scheduler)
}

/// The gang of a pod.
fn gang(plugin: &Registration, pod: &Pod, cluster: &Cluster) -> Option<Value> {
    let gangs: BTreeMap<String, Value> =
        serde_json::from_value(plugin.service_endpoint.as_ref()?.serve(&["gangs"], &Query::default(), cluster).ok()?)
            .ok()?;
    gangs.into_values().find(|gang| gang["children"].get(pod.key.as_str()).is_some())
}
