//! What pods are estimated to use beside what is reported.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn cast() -> Cast {
    let usage = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
    let of_pod = |name: &str, cpu: &str, priority: &str| json!({"namespace": "ns", "name": name, "podUsage": usage(cpu), "priority": priority});
    let metric = |updated: &str, pods: Value| {
        let node = json!({"nodeUsage": usage("3"), "systemUsage": usage("1")});
        let policy = json!({"metricCollectPolicy": {"reportIntervalSeconds": 60, "aggregateDurationSeconds": 300}});
        json!({"spec": policy, "status": {"updateTime": updated, "nodeMetric": node, "podsMetric": pods}})
    };
    let pods = json!([of_pod("p0", "500m", "koord-prod"), of_pod("p1", "4", "koord-batch")]);
    let huge =
        json!([of_pod("p0", "9223372036854775807", "koord-prod"), of_pod("p2", "9223372036854775807", "koord-prod")]);
    let metrics = vec![
        metric("2027-01-15T08:00:00Z", pods.clone()),
        metric("2027-01-15T08:02:00Z", json!([])),
        metric("2027-01-15T07:00:00Z", pods),
        metric("2027-01-15T08:01:00Z", huge),
        json!({"spec": {}, "status": {}}),
    ];
    let classed =
        |priority: &str, requests: Value| pod(json!({"koordinator.sh/priority-class": priority}), json!({}), requests);
    let estimated = json!({"scheduling.koordinator.sh/custom-estimated-scaling-factors": "{\"cpu\":10}"});
    Cast {
        nodes: vec![
            node("16", json!({}), json!({})),
            node(
                "8",
                json!({}),
                json!({"scheduling.koordinator.sh/usage-thresholds": "{", "node.koordinator.sh/raw-allocatable": "{\"cpu\":4}"}),
            ),
            node(
                "8",
                json!({}),
                json!({"scheduling.koordinator.sh/usage-thresholds": "{\"usageThresholds\":{\"cpu\":60}}", "node.koordinator.sh/raw-allocatable": "["}),
            ),
        ],
        pods: vec![
            classed("koord-prod", json!({"cpu": "2", "memory": "2Gi"})),
            classed("koord-batch", json!({"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": "2Gi"})),
            classed("koord-prod", json!({"cpu": "1", "memory": "9223372036854775807"})),
            pod(json!({}), estimated, json!({"cpu": "1"})),
            pod(json!({}), json!({"scheduling.koordinator.sh/custom-estimated-scaling-factors": "x"}), json!({})),
        ],
        objects: vec![("metric", "n0", metrics.clone()), ("metric", "n1", metrics.clone()), ("metric", "n3", metrics)],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn loads_are_those_of_the_pods_and_the_reports(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
