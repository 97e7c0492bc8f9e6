//! What a metrics server answers, as custom resources of an API server that has none.

use serde_json::{Value, json};

/// The definitions of NodeMetrics and PodMetrics.
pub fn definitions() -> [Value; 2] {
    [("NodeMetrics", "nodes", "Cluster"), ("PodMetrics", "pods", "Namespaced")].map(|(kind, plural, scope)| {
        let names =
            json!({"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")});
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let version = json!({"name": "v1beta1", "served": true, "storage": true, "schema": schema});
        let approved = json!({"api-approved.kubernetes.io": "unapproved, for tests"});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.metrics.k8s.io"), "annotations": approved},
            "spec": {"group": "metrics.k8s.io", "scope": scope, "names": names, "versions": [version]},
        })
    })
}

/// The path of the NodeMetrics, and one of them.
pub fn node_usage(node: &str, cpu: &str) -> (&'static str, Value) {
    let usage = json!({"cpu": cpu, "memory": "1Gi"});
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": node}, "usage": usage});
    ("/apis/metrics.k8s.io/v1beta1/nodes", metrics)
}

/// The path of the PodMetrics of the namespace `default`, and one of them.
pub fn pod_usage(pod: &str, cpu: &str) -> (&'static str, Value) {
    let containers = json!([{"name": "c", "usage": {"cpu": cpu, "memory": "100Mi"}}]);
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": pod}, "containers": containers});
    ("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", metrics)
}
