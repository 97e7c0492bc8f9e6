//! koord-scheduler, in a cluster of which one object may be or say anything.

use koord_api::catalogue::KEYS;
use koord_config::{Kind, scheduler::SchedulerConfiguration};
use koord_core::clock::Moment;
use koord_engine::engine::{Engine, Outcome};
use koord_program::{gates::Gates, plan::Source};
use koord_resource::yaml;
use koord_scheduler::{BUILD, Configuration, snapshot};
use koord_scheduler_plugins::build;
use koord_schema::patch;
use serde_json::{Value, json};
use tokio::runtime;

use crate::in_time;

/// More attempts than this for so few pods never end.
const ATTEMPTS_MAX: usize = 100;
/// Where the pod lives that has nothing to do with the others.
const APART: &str = "far-away-from-all-others";

/// Whatever one object says in an annotation and a label, or whatever its fields are: attempts come to an end, and a pod that has nothing
/// to do with the object gets a node. The first byte chooses the object, the second the key; where it chooses none, the text is a
/// merge patch of the object.
pub fn scheduler(data: &[u8]) {
    let Some((&[object, key], text)) = data.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut objects = cluster();
    let odd = usize::from(object) % (objects.len() - BYSTANDERS);
    if let Some(entry) = KEYS.get(usize::from(key)) {
        objects[odd]["metadata"]["annotations"][entry.name()] = json!(text);
        objects[odd]["metadata"]["labels"][entry.name()] = json!(text);
    } else {
        let Ok(patch) = serde_json::from_str::<Value>(text) else { return };
        objects[odd] = patch::merge::apply(objects[odd].take(), &patch);
    }
    in_time(|| {
        // Objects that cannot be read are left out.
        let Some(mut engine) = engine(objects) else { return };
        let mut bound = false;
        let mut attempts = 0;
        while let Some(attempt) = engine.attempt(Moment::default()) {
            bound |= attempt.pod.key.namespace() == APART && matches!(attempt.outcome, Outcome::Bind { .. });
            attempts += 1;
            assert!(attempts < ATTEMPTS_MAX, "{} is tried for ever: {:?}", attempt.pod.key, attempt.outcome);
        }
        assert!(bound, "the pod that has nothing to do with it has no node");
    });
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
        assert_eq!(kind.check(&effective), [], "what is in force is right");
        assert_eq!(kind.effective(&effective).expect("it is right").value, effective);
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

fn engine(objects: Vec<Value>) -> Option<Engine> {
    let configuration = Configuration::shipped_for_all_pods().expect("it is shipped");
    let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
    let now = "2026-01-02T03:04:05Z".parse().expect("a time");
    runtime.block_on(snapshot(&configuration, Gates::new(BUILD.gates), Source::Files(objects), now)).ok()
}

/// How many objects at the end of [`cluster`] stay as they are.
const BYSTANDERS: usize = 2;

/// One object of each kind that matters, and then a node and a pod for which they do not matter.
fn cluster() -> Vec<Value> {
    let koordinator = "scheduling.koordinator.sh/v1alpha1";
    let sigs = "scheduling.sigs.k8s.io/v1alpha1";
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    let template = json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]});
    let devices = json!([{"type": "gpu", "minor": 0, "health": true, "id": "GPU-0", "resources": {
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}}]);
    let zones = json!([{"name": "node-0", "type": "Node", "resources": [
        {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}]}]);
    let node = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
            "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110", "koordinator.sh/gpu-core": "100",
                "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi"}}})
    };
    let pod = |namespace: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name, "uid": name}, "spec": template,
            "status": {"phase": "Pending"}})
    };
    vec![
        pod("default", "odd"),
        node("n1"),
        json!({"apiVersion": koordinator, "kind": "Device", "metadata": {"name": "n1"}, "spec": {"devices": devices}}),
        json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "metadata": {"name": "n1"},
            "topologyPolicies": ["None"], "zones": zones}),
        json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"},
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
            "status": {"updateTime": "2026-01-02T03:04:00Z", "nodeMetric": {"nodeUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}}}}),
        json!({"apiVersion": koordinator, "kind": "Reservation", "metadata": {"name": "r", "uid": "r"}, "spec": {
            "owners": [{"labelSelector": {"matchLabels": {"app": "r"}}}],
            "template": {"metadata": {"namespace": "default"}, "spec": template}}}),
        json!({"apiVersion": sigs, "kind": "PodGroup", "metadata": {"namespace": "default", "name": "g"}, "spec": {"minMember": 1}}),
        json!({"apiVersion": sigs, "kind": "ElasticQuota", "metadata": {"namespace": "default", "name": "q", "uid": "q"},
            "spec": {"max": {"cpu": "4"}, "min": {"cpu": "1"}}}),
        node("n2"),
        pod(APART, "even"),
    ]
}
