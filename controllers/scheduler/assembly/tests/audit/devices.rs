//! What is allocated of each device.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn gpu(minor: u8, health: bool) -> Value {
    let resources = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "80Gi"});
    let place = json!({"nodeID": minor, "socketID": minor, "pcieID": "p"});
    json!({"type": "gpu", "id": format!("g{minor}"), "minor": minor, "health": health, "resources": resources, "topology": place})
}

fn rdma() -> Value {
    let functions = json!([{"vfs": [{"minor": 0, "busID": "0000:5f:00.2"}, {"minor": 1, "busID": "0000:5f:00.3"}]}]);
    json!({"type": "rdma", "id": "r0", "minor": 0, "health": true, "resources": {"koordinator.sh/rdma": "100"}, "vfGroups": functions})
}

fn cast() -> Cast {
    let report = |devices: Value| json!({"spec": {"devices": devices}});
    let reports = vec![
        report(json!([gpu(0, true), gpu(1, true), rdma()])),
        report(json!([gpu(0, true), gpu(1, false)])),
        report(json!([gpu(1, true)])),
        report(json!([])),
        json!({"metadata": {"annotations": {"scheduling.koordinator.sh/gpu-partitions": "{"}, "labels": {"node.koordinator.sh/gpu-partition-policy": "Honor"}}, "spec": {"devices": [gpu(0, true)]}}),
    ];
    let shared = json!({"cpu": "1", "koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"});
    let given =
        |text: &str| pod(json!({}), json!({"scheduling.koordinator.sh/device-allocated": text}), shared.clone());
    let share = |minor: i32, core: &str| {
        format!(
            r#"{{"gpu":[{{"minor":{minor},"resources":{{"koordinator.sh/gpu-core":"{core}","koordinator.sh/gpu-memory-ratio":"{core}"}}}}]}}"#
        )
    };
    let mut elsewhere = pod(json!({}), json!({}), shared.clone());
    elsewhere["spec"]["nodeSelector"] = json!({"zone": "a"});
    let asks = r#"{"rdma":{"strategy":"RequestsOrDefault","exclusivePolicy":"","vfSelector":{}}}"#;
    Cast {
        nodes: vec![node("32", json!({"zone": "a"}), json!({})), node("16", json!({}), json!({}))],
        pods: vec![
            pod(json!({}), json!({}), shared.clone()),
            pod(json!({}), json!({}), json!({"cpu": "1", "koordinator.sh/gpu": "200"})),
            pod(
                json!({}),
                json!({"scheduling.koordinator.sh/device-allocate-hint": asks}),
                json!({"koordinator.sh/rdma": "10"}),
            ),
            elsewhere,
            given(&share(0, "50")),
            given(&share(7, "0")),
            given(&share(7, "30")),
            given(&share(1, "-30")),
            given(&share(1, "9223372036854775807")),
            given(r#"{"gpu":[{"minor":"none"}]}"#),
            given(r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"x"}}]}"#),
            given(
                r#"{"rdma":[{"minor":0,"resources":{"koordinator.sh/rdma":"1"},"extension":{"vfs":[{"busID":"0000:5f:00.2"},{"busID":"0000:5f:00.2"}]}}],"xpu":[{"minor":0}]}"#,
            ),
        ],
        objects: vec![("device", "n0", reports.clone()), ("device", "n1", reports.clone()), ("device", "n3", reports)],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn devices_are_allocated_as_the_pods_say(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
