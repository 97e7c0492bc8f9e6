//! koord-descheduler, in a cluster of which one object may be or say anything.

mod cluster;

use std::{collections::BTreeSet, sync::LazyLock};

use koord_config::descheduler::DeschedulerConfiguration;
use koord_descheduler_assembly::{Built, build, snapshot};
use koord_descheduler_framework::{Input, Memory, VerdictScope};
use koord_program::plan::Source;
use koord_resource::yaml;
use koord_schema::patch;
use serde_json::{Value, json};
use tokio::runtime;

use self::cluster::{APART, BYSTANDERS, cluster};
use crate::in_time;

/// Every strategy, with MigrationController; and a profile that has nothing to do with the objects that may be anything.
static BUILT: LazyLock<Built> = LazyLock::new(|| {
    let document = yaml::parse(include_str!("descheduling/everything.yaml")).expect("it is YAML");
    let problems = koord_config::Kind::Descheduler.check(&document);
    assert!(problems.is_empty(), "{problems:?}");
    build(&DeschedulerConfiguration::of(&document).expect("it was found right")).expect("it can be built")
});

/// Annotations and labels that the descheduler reads.
const KEYS: [&str; 14] = [
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "scheduling.koordinator.sh/eviction-cost",
    "controller.kubernetes.io/pod-deletion-cost",
    "scheduling.koordinator.sh/soft-eviction",
    "koordinator.sh/evict-policy",
    "koordinator.sh/evict-reason",
    "koordinator.sh/evict-trigger",
    "koordinator.sh/job-created-by",
    "descheduler.koordinator.sh/passed-arbitration",
    "scheduling.koordinator.sh/reservation-order",
    "node.koordinator.sh/raw-allocatable",
    "koordinator.sh/priority-class",
    "koordinator.sh/qosClass",
];

/// Whatever one object says in an annotation and a label, or whatever its fields are: a pass and arbitration come to an end, and a failed pod that has
/// nothing to do with the object is evicted. The first byte chooses the object, the second the key: where it chooses none, the text is a merge patch of the
/// object.
pub fn descheduler(data: &[u8]) {
    let Some((&[object, key], text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut objects = cluster();
    let odd = usize::from(object) % (objects.len() - BYSTANDERS);
    if let Some(key) = KEYS.get(usize::from(key)) {
        objects[odd]["metadata"]["annotations"][key] = json!(text);
        objects[odd]["metadata"]["labels"][key] = json!(text);
    } else {
        let Ok(patch) = serde_json::from_str::<Value>(text) else { return };
        objects[odd] = patch::merge::apply(objects[odd].take(), &patch);
    }
    // One that takes the name of a bystander has to do with it.
    let is_of_others =
        |field: &str| objects[odd]["metadata"][field].as_str().is_some_and(|text| text.starts_with(APART));
    if is_of_others("name") || is_of_others("namespace") {
        return;
    }
    in_time(|| holds(objects));
}

fn holds(objects: Vec<Value>) {
    let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
    let now = "2026-01-02T03:04:05Z".parse().expect("a time");
    // An object that cannot be read is left out by the program, and refused in files.
    let Ok(cluster) = runtime.block_on(snapshot(&BUILT.descheduler, Source::Files(objects), now)) else { return };
    let memory = Memory::default();
    let input = Input { verdicts_of: VerdictScope::All(usize::MAX), ..Input::new(&cluster, &memory, now) };
    let plan = BUILT.descheduler.pass(&input);
    let evicted: BTreeSet<&str> =
        plan.steps.iter().filter_map(|step| step.eviction()).map(|eviction| eviction.pod.key.namespace()).collect();
    assert!(
        evicted.contains(APART),
        "the pod that has nothing to do with it stays: {:?} {:?}",
        plan.skipped,
        plan.errors
    );
    let again = BUILT.descheduler.pass(&Input { results: &vec![false; plan.steps.len()], ..input });
    assert_eq!(plan.steps.first(), again.steps.first(), "a failure changes only what follows");
    let (plugin, _) = BUILT.migration.as_ref().expect("it is enabled");
    let decided = plugin.arbitrate(&cluster, &BTreeSet::new()).len();
    assert!(decided <= 2, "{decided} decisions about two jobs");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that objects lose or get.
    fn patches() -> [Value; 9] {
        [
            json!({}),
            json!({"spec": null}),
            json!({"status": null}),
            json!({"spec": {}, "status": {}}),
            json!({"metadata": {"labels": null, "annotations": null, "uid": null}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:04Z", "finalizers": ["example.com/stays"]}}),
            json!({"status": {"phase": "Nonsense", "conditions": []}}),
            json!({"spec": {"podRef": {"namespace": "", "name": null}, "ttl": "-5m", "mode": "Nonsense"}}),
            json!({"status": {"updateTime": "2026-01-02T03:04:05Z", "podsMetric": [{}], "nodeMetric": {"nodeUsage": {"resources": {"cpu": "-9E"}}}}}),
        ]
    }

    #[test]
    fn every_key_of_all_objects_may_say_what_makes_no_sense() {
        let count = u8::try_from(cluster().len() - BYSTANDERS).unwrap();
        for object in 0..count {
            for key in 0..=u8::try_from(KEYS.len()).unwrap() {
                for text in ["", "-99999999999999999999", "{\"cpu\":\"-9E\"}", "true"] {
                    descheduler(&[&[object, key], text.as_bytes()].concat());
                }
            }
            for patch in patches() {
                descheduler(&[&[object, u8::MAX], patch.to_string().as_bytes()].concat());
            }
        }
    }
}
