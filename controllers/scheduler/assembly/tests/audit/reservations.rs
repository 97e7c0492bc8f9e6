//! What is allocated of each reservation, and to whom.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn forms() -> Vec<Value> {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "4Gi"}}});
    let template = json!({"spec": {"schedulerName": "koord-scheduler", "containers": [container]}});
    let owners = json!([{"labelSelector": {"matchLabels": {"app": "a"}}}]);
    let form = |spec: Value, status: Value| {
        let mut object = json!({"spec": {"template": template, "owners": owners, "ttl": "24h"}, "status": status});
        for (field, value) in spec.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        object
    };
    let available = |node: &str| json!({"phase": "Available", "nodeName": node});
    let mut withheld = form(json!({"allocatePolicy": "Restricted", "allocateOnce": false}), available("n0"));
    withheld["metadata"]["annotations"] = json!({
        "scheduling.koordinator.sh/reservation-restricted-options": "{\"resources\":[\"cpu\"]}",
        "node.koordinator.sh/reservation": "[",
    });
    vec![
        form(json!({}), json!({})),
        form(json!({"allocateOnce": false}), json!({"phase": "Pending"})),
        form(json!({"allocateOnce": false}), available("n0")),
        form(json!({"allocateOnce": false, "allocatePolicy": "Aligned"}), available("n1")),
        form(
            json!({"allocateOnce": false}),
            json!({"phase": "Available", "nodeName": "n1", "allocatable": {"cpu": "9"}}),
        ),
        form(json!({}), json!({"phase": "Succeeded", "nodeName": "n0"})),
        form(json!({}), json!({"phase": "Failed", "nodeName": "n0"})),
        form(json!({"owners": [{"object": {"name": "p0", "namespace": "ns"}}]}), available("n0")),
        form(
            json!({"owners": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}}]}),
            available("n1"),
        ),
        form(json!({"template": null}), available("n1")),
        withheld,
    ]
}

fn cast() -> Cast {
    let requests = || json!({"cpu": "1", "memory": "1Gi"});
    let given = |name: &str, text: Value| pod(json!({"app": "a"}), json!({name: text}), requests());
    let allocated = "scheduling.koordinator.sh/reservation-allocated";
    let keeps = |annotations: Value| {
        pod(json!({"app": "b", "scheduling.koordinator.sh/operating-mode": "Reservation"}), annotations, requests())
    };
    let owners = r#"[{"labelSelector":{"matchLabels":{"app":"a"}}}]"#;
    Cast {
        nodes: vec![node("32", json!({"zone": "a"}), json!({})), node("4", json!({}), json!({}))],
        pods: vec![
            pod(json!({"app": "a"}), json!({}), requests()),
            given("scheduling.koordinator.sh/reservation-affinity", json!("{}")),
            given(allocated, json!(r#"{"name":"r0","uid":"r0-1"}"#)),
            given(allocated, json!(r#"{"name":"r1","uid":"r1-2"}"#)),
            given(allocated, json!("{")),
            keeps(json!({"scheduling.koordinator.sh/reservation-owners": owners})),
            keeps(json!({
                "scheduling.koordinator.sh/reservation-owners": owners,
                "scheduling.koordinator.sh/reservation-current-owner": r#"{"name":"p1","uid":"p1-3"}"#,
            })),
            keeps(json!({"scheduling.koordinator.sh/reservation-owners": "{"})),
        ],
        objects: vec![("reservation", "r0", forms()), ("reservation", "r1", forms())],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn reservations_are_used_by_the_pods_that_say_so(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
