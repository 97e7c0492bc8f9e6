//! What the pods of quotas request and use, up to the roots of the trees.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, Step, config, histories, holds, node, pod};

const DOMAIN: &str = "quota.scheduling.koordinator.sh";

fn quota(parent: &str, labels: Value, annotations: Value, [min, max]: [&str; 2]) -> Value {
    let mut object = json!({"metadata": {"labels": {}, "annotations": {}}, "spec": {"min": {"cpu": min}, "max": {"cpu": max, "memory": "100Gi"}}});
    object["metadata"]["labels"][format!("{DOMAIN}/parent")] = json!(parent);
    for (part, of) in [("labels", labels), ("annotations", annotations)] {
        for (name, value) in of.as_object().unwrap() {
            object["metadata"][part][format!("{DOMAIN}/{name}")] = value.clone();
        }
    }
    object
}

fn cast(gates: &[&'static str]) -> Cast {
    let root = "koordinator-root-quota";
    let above = vec![
        quota(root, json!({"is-parent": "true"}), json!({}), ["10", "20"]),
        quota(
            root,
            json!({"is-parent": "true", "allow-lent-resource": "false"}),
            json!({"shared-weight": "{"}),
            ["6", "6"],
        ),
        quota(
            root,
            json!({"is-parent": "true", "tree-id": "t", "is-root": "true"}),
            json!({"total-resource": "{\"cpu\":\"40\"}"}),
            ["10", "20"],
        ),
    ];
    let below = vec![
        quota("above", json!({}), json!({}), ["2", "4"]),
        quota("above", json!({"allow-lent-resource": "false"}), json!({"namespaces": "[\"ns\"]"}), ["4", "8"]),
        quota("beside", json!({}), json!({"namespaces": "["}), ["0", "2"]),
        quota("below", json!({"tree-id": "t"}), json!({}), ["1", "5"]),
        quota("above", json!({"tree-id": "t"}), json!({"guaranteed": "x"}), ["1", "5"]),
    ];
    let member = |of: &str, preemptible: &str, requests: Value| {
        pod(json!({format!("{DOMAIN}/name"): of, format!("{DOMAIN}/preemptible"): preemptible}), json!({}), requests)
    };
    let mut overhead = member("below", "true", json!({"cpu": "1"}));
    overhead["spec"]["overhead"] = json!({"cpu": "500m", "x/y": "1"});
    Cast {
        nodes: vec![node("16", json!({}), json!({})), node("8", json!({}), json!({}))],
        pods: vec![
            member("below", "true", json!({"cpu": "1", "memory": "1Gi"})),
            member("below", "false", json!({"cpu": "1500m"})),
            member("above", "no", json!({"cpu": "2"})),
            member("beside", "false", json!({"cpu": "3", "koordinator.sh/rdma": "1"})),
            member("nowhere", "true", json!({"cpu": "1"})),
            member("koordinator-system-quota", "true", json!({"cpu": "1"})),
            pod(json!({}), json!({}), json!({"cpu": "1", "memory": "9223372036854775807"})),
            overhead,
        ],
        objects: vec![("quota", "above", above.clone()), ("quota", "beside", above), ("quota", "below", below)],
        gates: gates.to_vec(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn quotas_count_the_pods_that_are_known(steps in histories(), gates in 0..4_usize) {
        let gates: &[&str] = [
            &["MultiQuotaTree", "ElasticQuotaGuaranteeUsage"][..],
            &["ElasticQuotaIgnoreTerminatingPod"],
            &["ElasticQuotaImmediateIgnoreTerminatingPod", "ElasticQuotaIgnorePodOverhead", "MultiQuotaTree"],
            &["DisableDefaultQuota"],
        ][gates];
        holds(&cast(gates), &steps)?;
    }
}

#[test]
fn a_pod_that_has_changed_since_it_was_placed_leaves_nothing_when_its_time_is_over() {
    let steps =
        [Step::Node(0, 0), Step::Pod(0, 0), Step::Attempts(0), Step::Pod(0, 1), Step::Deleting(0), Step::Passes(0)];
    holds(&cast(&["ElasticQuotaIgnoreTerminatingPod"]), &steps).unwrap();
}
