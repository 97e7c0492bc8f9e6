//! What nodes offer and pods request, images and topology domains.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn cast() -> Cast {
    let image = |name: &str, size: u64| json!({"names": [name, format!("{name}:latest")], "sizeBytes": size});
    let mut with_images = node("8", json!({"zone": "a"}), json!({}));
    with_images["status"]["images"] = json!([image("web", 900), image("db", 10)]);
    let mut twice = node("4", json!({"zone": "b", "kubernetes.io/hostname": "h"}), json!({}));
    twice["status"]["images"] = json!([image("web", 800), image("web", 800)]);
    twice["spec"]["taints"] = json!([{"key": "t", "effect": "PreferNoSchedule"}]);
    let spread =
        json!([{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]);
    let apart = json!([{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}]);
    let huge = json!({"cpu": "1", "memory": "9223372036854775807", "x/y": "9223372036854775807"});
    let with = |form: Value, member: &str, value: Value| {
        let mut form = form;
        form["spec"][member] = value;
        form
    };
    let plain = pod(json!({"app": "a"}), json!({}), json!({"cpu": "500m", "memory": "1Gi"}));
    Cast {
        nodes: vec![with_images, twice, node("2", json!({}), json!({}))],
        pods: vec![
            with(plain.clone(), "topologySpreadConstraints", spread),
            with(
                plain.clone(),
                "affinity",
                json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}),
            ),
            pod(json!({}), json!({}), huge),
            with(plain.clone(), "priority", json!(1000)),
            plain,
        ],
        ..Cast::default()
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn sums_of_nodes_are_what_the_objects_amount_to(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
