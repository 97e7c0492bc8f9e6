//! The cluster that is measured: nodes, profiles, pods and what koordlets report about them.

use integration::objects::Object;
use serde_json::{Value, json};

/// Nodes of the cluster.
pub(crate) const NODES: usize = 5_000;
/// Pods of the cluster, evenly spread over the nodes.
pub(crate) const PODS: usize = 50_000;
const GIB: u64 = 1 << 30;

/// What an administrator configures: a namespace for the manager, colocation switched on, some profiles.
pub(crate) fn configuration() -> Vec<Object> {
    let namespace = ("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": "koordinator-system"}}));
    let config = json!({
        "metadata": {"name": "slo-controller-config"},
        "data": {"colocation-config": json!({"enable": true}).to_string()},
    });
    let config = ("/api/v1/namespaces/koordinator-system/configmaps".to_owned(), config);
    let profiles = (0..20).map(|number| {
        let profile = json!({
            "apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile",
            "metadata": {"name": format!("profile-{number}")},
            "spec": {
                "selector": {"matchLabels": {"team": format!("team-{number}")}},
                "qosClass": "BE", "priorityClassName": "koord-batch",
                "labels": {"example.com/colocated": "true"},
            },
        });
        ("/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles".to_owned(), profile)
    });
    [namespace, config].into_iter().chain(profiles).collect()
}

/// A node with what its kubelet says about it.
pub(crate) fn node(number: usize) -> Object {
    let has = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    let labels = json!({
        "kubernetes.io/hostname": node_name(number), "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": format!("zone-{}", number % 3), "pool": format!("p{}", number % 10),
    });
    let node = json!({
        "metadata": {"name": node_name(number), "labels": labels},
        "status": {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    ("/api/v1/nodes".to_owned(), node)
}

/// Name of a node.
pub(crate) fn node_name(number: usize) -> String {
    format!("node-{number}")
}

fn pod_name(number: usize) -> (String, String) {
    (format!("team-{}", number % 100), format!("web-{}-7d9c5b8f4d-{number:05}", number % 400))
}

fn node_of(number: usize) -> usize {
    number / (PODS / NODES)
}

/// A pod of 3 KB that runs: half of them what a profile made of it, half of class prod.
pub(crate) fn pod(number: usize) -> Object {
    let (namespace, name) = pod_name(number);
    let is_batch = number.is_multiple_of(2);
    let amounts = if is_batch {
        json!({"kubernetes.io/batch-cpu": "2000", "kubernetes.io/batch-memory": "4Gi"})
    } else {
        json!({"cpu": "2", "memory": "4Gi"})
    };
    let variables: Vec<Value> = (0..8)
        .map(|variable| json!({"name": format!("SETTING_{variable}"), "value": format!("value of {name}")}))
        .collect();
    let container = |which: &str| {
        json!({
            "name": which, "image": format!("registry.example.com/shop/{which}:v1.{}", number % 30), "env": variables,
            "resources": {"requests": amounts, "limits": amounts},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
        })
    };
    let pod = json!({
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {
                "app": format!("web-{}", number % 400), "team": format!("team-{}", number % 100), "pod-template-hash": "7d9c5b8f4d",
                "koordinator.sh/qosClass": if is_batch { "BE" } else { "LS" },
                "koordinator.sh/priority-class": if is_batch { "koord-batch" } else { "koord-prod" },
                "quota.scheduling.koordinator.sh/name": format!("team-{}", number % 100),
            },
            "annotations": {"example.com/revision": "12", "example.com/contact": "shop@example.com"},
        },
        "spec": {
            "nodeName": node_name(node_of(number)), "containers": [container("main"), container("sidecar")],
            "schedulerName": "koord-scheduler",
        },
        "status": {"phase": "Running", "qosClass": "Burstable", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z"},
    });
    (format!("/api/v1/namespaces/team-{}/pods", number % 100), pod)
}

/// Namespaces of the pods.
pub(crate) fn namespaces() -> Vec<Object> {
    (0..100)
        .map(|team| ("/api/v1/namespaces".to_owned(), json!({"metadata": {"name": format!("team-{team}")}})))
        .collect()
}

/// What the koordlet of a node reports at a time: the use of the node, of its pods, and of `others` pods that are gone
/// already, which make a report as large as one of a crowded node.
pub(crate) fn report(node: usize, others: usize, time: &str) -> Value {
    let use_of = |cpu_milli: u64, memory: u64| json!({"resources": {"cpu": format!("{cpu_milli}m"), "memory": memory.to_string()}});
    let usage = use_of(20_000, 80 * GIB);
    let aggregated: Vec<Value> = ["5m", "10m", "30m"]
        .into_iter()
        .map(|duration| json!({"duration": duration, "usage": {"avg": usage, "p50": usage, "p90": usage, "p95": usage, "p99": usage}}))
        .collect();
    let each = PODS / NODES;
    let own = (node * each..(node + 1) * each).map(|number| {
        let (namespace, name) = pod_name(number);
        let class = if number.is_multiple_of(2) { ("koord-batch", "BE") } else { ("koord-prod", "LS") };
        json!({"namespace": namespace, "name": name, "podUsage": use_of(1_000, 2 * GIB + number as u64), "priority": class.0, "qos": class.1})
    });
    let others = (0..others).map(|other| {
        json!({"namespace": "default", "name": format!("job-{node}-{other:05}"), "podUsage": use_of(1_500, 3 * GIB), "priority": "koord-batch", "qos": "BE"})
    });
    json!({"status": {
        "updateTime": time,
        "nodeMetric": {"nodeUsage": usage, "systemUsage": use_of(2_000, 8 * GIB), "aggregatedNodeUsages": aggregated},
        "podsMetric": own.chain(others).collect::<Vec<Value>>(),
        "prodReclaimableMetric": {"resource": use_of(4_000, 8 * GIB)},
    }})
}
