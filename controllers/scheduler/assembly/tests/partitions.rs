//! Whether GPUs are given out in partitions only follows the label of their node.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{collections::BTreeMap, sync::Arc};

use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_assembly::build;
use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
};
use koord_types::device::Device;
use serde_json::{Value, json};

fn engine() -> Engine {
    let points = ["preFilter", "filter", "reserve"];
    let plugins: BTreeMap<&str, Value> =
        points.iter().map(|point| (*point, json!({"enabled": [{"name": "DeviceShare"}]}))).collect();
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "koord-scheduler", "plugins": plugins}],
    });
    let configuration = SchedulerConfiguration::of(&document).unwrap();
    let profile = build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile;
    Engine::new(vec![profile], Timings::default(), Random::seeded(1))
}

/// A node of eight GPUs that work in pairs, fours and all together.
fn set_node(engine: &mut Engine, policy: Option<&str>) {
    let mut labels = json!({"node.koordinator.sh/gpu-vendor": "nvidia", "node.koordinator.sh/gpu-model": "H100"});
    if let Some(policy) = policy {
        labels["node.koordinator.sh/gpu-partition-policy"] = json!(policy);
    }
    let amounts =
        json!({"cpu": "64", "pods": "99", "koordinator.sh/gpu-core": "800", "koordinator.sh/gpu-memory-ratio": "800"});
    let object = json!({"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": amounts}});
    engine.set_node(Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap()), Moment::default());
}

fn report(engine: &mut Engine) {
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "80Gi"});
    let gpu = |minor: i32| json!({"type": "gpu", "id": format!("g{minor}"), "minor": minor, "health": true, "resources": resources});
    let devices: Vec<Value> = (0..8).map(gpu).collect();
    let device: Device = serde_json::from_value(json!({"spec": {"devices": devices}})).unwrap();
    let object = Object::new(ObjectKey::cluster("n"), Uid::from("n"), false, Arc::new(device));
    engine.set_object(object, Moment::default());
}

/// Whether a pod finds three GPUs, which are no partition. It is gone after that.
fn gets_three(engine: &mut Engine, name: &str) -> bool {
    let requests = json!({"koordinator.sh/gpu-core": "300", "koordinator.sh/gpu-memory-ratio": "300"});
    let spec =
        json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": requests}}]});
    let template = Template::of("ns", Labels::default(), &BTreeMap::new(), &serde_json::from_value(spec).unwrap());
    let (key, uid, template) = (ObjectKey::new("ns", name), Uid::from(name), Arc::new(template.unwrap()));
    engine.set_pod(Arc::new(Pod { key, uid: uid.clone(), template, ..Pod::default() }), Moment::default());
    let outcome = engine.attempt(Moment::default()).unwrap().outcome;
    engine.remove_pod(&uid, Moment::default());
    matches!(outcome, Outcome::Bind { .. })
}

#[test]
fn a_node_gives_out_partitions_only_while_its_label_says_so() {
    let mut engine = engine();
    set_node(&mut engine, None);
    report(&mut engine);
    for (number, (policy, is_found)) in
        [(None, true), (Some("Honor"), false), (None, true), (Some("Prefer"), true), (Some("Honor"), false)]
            .into_iter()
            .enumerate()
    {
        set_node(&mut engine, policy);
        assert_eq!(gets_three(&mut engine, &format!("p{number}")), is_found, "{number}: {policy:?}");
    }
    engine.remove_node("n", Moment::default());
    set_node(&mut engine, None);
    report(&mut engine);
    assert!(gets_three(&mut engine, "last"), "a node that comes again has no label");
}
