//! koord-scheduler, in a cluster of which one object may be or say anything.

mod cluster;
mod extremes;
mod questions;
mod switches;
#[cfg(test)]
mod tests;

use koord_config::{
    Kind,
    descheduler::DeschedulerConfiguration,
    policy::{Evictor, translate},
    scheduler::SchedulerConfiguration,
};
use koord_core::clock::Moment;
use koord_program::plan::Source;
use koord_resource::yaml;
use koord_scheduler_assembly::build;
use koord_scheduler_assembly::snapshot;
use koord_scheduler_engine::{Engine, Outcome};
use koord_schema::patch;
use koord_types::catalogue::KEYS;
use serde_json::{Value, json};
use tokio::runtime;

pub use self::questions::explanation;
use self::{
    cluster::{APART, BYSTANDERS, cluster},
    switches::Switches,
};
use crate::in_time;

/// More attempts than this for so few pods never end.
const ATTEMPTS_MAX: usize = 100;
/// In the first byte: with every gate and every optional argument that the scheduler has, instead of those that it has by default.
const ALL_ON: u8 = 0x80;
/// In the second byte: what follows is no text but chooses numbers of all objects, which become as large or small as can be.
const NUMBERS: u8 = u8::MAX;

/// Keys that are read as they are, without a declaration of what they may say.
const OTHER_KEYS: [&str; 17] = [
    "quota.scheduling.koordinator.sh/name",
    "quota.scheduling.koordinator.sh/parent",
    "quota.scheduling.koordinator.sh/tree-id",
    "quota.scheduling.koordinator.sh/profile",
    "koordinator.sh/qosClass",
    "koordinator.sh/priority-class",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.koordinator.sh/scheduling-hint",
    "internal.scheduling.koordinator.sh/scheduling-hint",
    "internal.scheduling.koordinator.sh/bind-gang-group-id",
    "internal.scheduling.koordinator.sh/bind-gang-member-count",
    "scheduling.koordinator.sh/gpu-minors",
    "scheduling.koordinator.sh/bind-timestamp",
    "scheduling.koordinator.sh/reservation-name",
    "scheduling.koordinator.sh/reservation-node",
    "scheduling.koordinator.sh/reserve-pod",
];

/// Every label and annotation that something reads.
fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|entry| entry.name()).chain(OTHER_KEYS)
}

/// Whatever one object says in an annotation and a label, or whatever its fields are: attempts come to an end, and a pod that has nothing
/// to do with the object gets a node. The first byte chooses the object, and by its highest bit what is switched on; the second the key:
/// where it chooses none, the text is a merge patch of the object, or bytes that choose numbers of all objects and the extremes that
/// they become.
pub fn scheduler(data: &[u8]) {
    let Some((&[object, key], text)) = data.split_first_chunk() else { return };
    let switches = if object & ALL_ON == 0 { &switches::SHIPPED } else { &switches::ALL_ON };
    let mut objects = cluster();
    if key == NUMBERS {
        let others = objects.len() - BYSTANDERS;
        extremes::set_by(text, &mut objects[..others]);
        return holds(objects, switches);
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    let odd = usize::from(object & !ALL_ON) % (objects.len() - BYSTANDERS);
    if let Some(key) = keys().nth(usize::from(key)) {
        says(&mut objects[odd], key, text);
    } else {
        let Ok(patch) = serde_json::from_str::<Value>(text) else { return };
        objects[odd] = patch::merge::apply(objects[odd].take(), &patch);
    }
    holds(objects, switches);
}

/// Has an object say this, as an annotation and as a label.
fn says(object: &mut Value, key: &str, text: &str) {
    object["metadata"]["annotations"][key] = json!(text);
    object["metadata"]["labels"][key] = json!(text);
}

/// Attempts come to an end, and the pod that has nothing to do with the others gets a node.
fn holds(objects: Vec<Value>, switches: &Switches) {
    in_time(|| {
        // Objects that cannot be read are left out.
        if let Some(engine) = engine(objects, switches) {
            goes_on(engine);
        }
    });
}

/// Attempts come to an end, and one of them gives a node to the pod that has nothing to do with the others.
fn goes_on(mut engine: Engine) {
    let mut bound = false;
    let mut attempts = 0;
    while let Some(attempt) = engine.attempt(Moment::default()) {
        bound |= attempt.pod.key.namespace() == APART && matches!(attempt.outcome, Outcome::Bind { .. });
        attempts += 1;
        assert!(attempts < ATTEMPTS_MAX, "{} is tried for ever: {:?}", attempt.pod.key, attempt.outcome);
    }
    assert!(bound, "the pod that has nothing to do with it has no node");
}

/// A configuration that is found right can be completed, read and built, or says which plugin's arguments cannot be used; the same again
/// follows from what is in force.
pub fn configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(document) = yaml::parse(text) else { return };
    let Some(kind) = Kind::of(&document) else { return };
    in_time(|| {
        if !kind.check(&document).is_empty() {
            return;
        }
        let effective = kind.effective(&document).expect("it was found right").value;
        if matches!(kind, Kind::PolicyV1alpha1 | Kind::PolicyV1alpha2) {
            // What is in force with a policy is a document of another kind.
            let translation = translate(&document, Evictor::default()).expect("it was found right");
            let configuration = DeschedulerConfiguration::of(&translation.document).expect("it was found right");
            if let Err(error) = koord_descheduler_assembly::build(&configuration) {
                assert!(!error.to_string().is_empty());
            }
            return;
        }
        assert_eq!(kind.check(&effective), [], "what is in force is right");
        assert_eq!(kind.effective(&effective).expect("it is right").value, effective);
        if kind == Kind::Descheduler {
            let configuration = DeschedulerConfiguration::of(&document).expect("it was found right");
            if let Err(error) = koord_descheduler_assembly::build(&configuration) {
                assert!(!error.to_string().is_empty());
            }
        }
        if kind == Kind::Scheduler {
            let configuration = SchedulerConfiguration::of(&document).expect("it was found right");
            for profile in &configuration.profiles {
                if let Err(error) = build(&profile.resolved(), &|_| false) {
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    });
}

fn engine(objects: Vec<Value>, Switches { configuration, gates }: &Switches) -> Option<Engine> {
    let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
    let now = "2026-01-02T03:04:05Z".parse().expect("a time");
    runtime.block_on(snapshot(configuration, gates, Source::Files(objects), now)).ok()
}
