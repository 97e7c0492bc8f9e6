//! Steps of a plan as writes, and what is reported of them.

use std::sync::Arc;

use koord_descheduler_framework::{EvictedPod, Eviction, Means, Step, pod::DELETION_COST};
use koord_descheduler_migration::jobs::{CREATED_BY, EVICT_REASON, EVICT_TRIGGER};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    write::{Action, Deletion, Write},
};
use koord_types::pod_migration_job::PodMigrationJob;
use serde_json::{Map, Value, json};

/// What a step writes; `None` where it writes nothing. A new PodMigrationJob gets this name, and the id of the process.
pub fn write(step: &Step, name: impl FnOnce() -> String, process: &str) -> Option<Write> {
    let node = |node: &Arc<str>, is_unschedulable: bool| Write {
        kind: ResourceKind::NODE,
        key: ObjectKey::cluster(node),
        action: Action::Patch { subresource: "", patch: json!({"spec": {"unschedulable": is_unschedulable}}) },
    };
    match step {
        Step::Evict(eviction) => evict(eviction, name, process),
        Step::Cordon { node: name } => Some(node(name, true)),
        Step::Uncordon { node: name } => Some(node(name, false)),
        Step::SetDeletionCost { pod, cost } => Some(of_pod(
            pod,
            Action::Patch {
                subresource: "",
                patch: json!({"metadata": {"uid": pod.uid, "annotations": {DELETION_COST: cost.to_string()}}}),
            },
        )),
    }
}

fn evict(eviction: &Eviction, name: impl FnOnce() -> String, process: &str) -> Option<Write> {
    match &eviction.means {
        Means::DryRun => None,
        Means::Eviction { .. } => Some(of_pod(&eviction.pod, Action::Evict(Deletion::of(eviction.pod.uid.clone())))),
        Means::Job { mode, ttl_ms, delete_options } => {
            let name = name();
            let mut spec = Map::from_iter([
                ("mode".to_owned(), json!(mode.as_str())),
                (
                    "podRef".to_owned(),
                    json!({
                        "namespace": eviction.pod.key.namespace(),
                        "name": eviction.pod.key.name(),
                        "uid": eviction.pod.uid,
                    }),
                ),
                ("ttl".to_owned(), json!(go_duration(*ttl_ms))),
            ]);
            if let Some(options) = delete_options {
                spec.insert("deleteOptions".to_owned(), options.clone());
            }
            let annotations =
                json!({EVICT_REASON: eviction.recorded_reason, EVICT_TRIGGER: eviction.plugin, CREATED_BY: process});
            let kind = ResourceKind::typed::<PodMigrationJob>();
            let job = json!({
                "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob",
                "metadata": {"name": name, "annotations": annotations}, "spec": Value::Object(spec),
            });
            Some(Write { kind, key: ObjectKey::cluster(&name), action: Action::Create(job) })
        }
    }
}

fn of_pod(pod: &EvictedPod, action: Action) -> Write {
    Write { kind: ResourceKind::POD, key: pod.key.clone(), action }
}

/// A duration as Go writes it.
fn go_duration(ms: i64) -> String {
    koord_resource::Duration::from_nanos(ms.saturating_mul(1_000_000)).to_string()
}

/// What is reported of an eviction that succeeded; nothing where a PodMigrationJob was made, which reports for itself.
pub(crate) fn event(eviction: &Eviction) -> Option<Event> {
    if !matches!(eviction.means, Means::Eviction { .. }) {
        return None;
    }
    let node = eviction.pod.node.as_deref().unwrap_or("no node");
    let message = format!("evicted from {node} by {}: {}", eviction.plugin, eviction.reason);
    Some(about(eviction, EventType::Normal, "Descheduled", message))
}

/// What is reported of an eviction that failed.
pub(crate) fn failure(eviction: &Eviction, error: &str) -> Event {
    let message = format!("could not be evicted by {} ({}): {error}", eviction.plugin, eviction.reason);
    about(eviction, EventType::Warning, "EvictionFailed", message)
}

/// What is reported of an eviction that is not worth it, whether it takes place or not.
pub(crate) fn objection(eviction: &Eviction, is_spared: bool) -> Option<Event> {
    let objection = eviction.outlook.objection.as_ref()?.reason();
    let (strategy, remedy) = (eviction.plugin, objection.code.remedy());
    let what = if is_spared { "stays, although" } else { "is evicted because" };
    let why = &eviction.reason.text;
    let message = format!("{what} {strategy} wants that ({why}); not worth it: {}. {remedy}", objection.text);
    Some(about(eviction, EventType::Warning, "EvictionNotWorthIt", message))
}

fn about(eviction: &Eviction, type_: EventType, reason: &'static str, message: String) -> Event {
    let pod = Regarded { kind: ResourceKind::POD, key: eviction.pod.key.clone(), uid: eviction.pod.uid.clone() };
    let event = Event::new(pod, type_, "Evicting", reason, message);
    Event { reporter: Some(Arc::clone(&eviction.profile)), ..event }
}
