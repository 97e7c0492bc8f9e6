//! Usage of the metrics server, whose objects the embedded API server has as custom resources.

use super::*;

/// By usage: below 20 % of cpu a node is underutilized, above 50 % it is overutilized. Failed pods are removed, too.
fn by_usage() -> String {
    format!(
        "profiles: [{{name: p, plugins: {{deschedule: {{enabled: [{{name: RemoveFailedPods}}]}}, balance: {{enabled: [{{name: LowNodeUtilization}}]}}, {EVICTS}}}, pluginConfig: [{{name: RemoveFailedPods, args: {{minPodLifetimeSeconds: 0}}}}, {{name: LowNodeUtilization, args: {{thresholds: {{cpu: 20}}, targetThresholds: {{cpu: 50}}, metricsUtilization: {{source: KubernetesMetrics}}}}}}]}}]\n"
    )
}

async fn define(stage: &Stage, kind: &str, plural: &str, scope: &str) {
    let names =
        json!({"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.metrics.k8s.io"), "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
        "spec": {"group": "metrics.k8s.io", "scope": scope, "names": names, "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": schema}]},
    });
    stage.create(DEFINITIONS, &definition).await;
}

async fn measured(stage: &Stage, node: &str, cpu: &str) {
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": node}, "usage": {"cpu": cpu, "memory": "1Gi"}});
    stage.create("/apis/metrics.k8s.io/v1beta1/nodes", &metrics).await;
}

async fn measured_pod(stage: &Stage, pod: &str, cpu: &str) {
    let containers = json!([{"name": "c", "usage": {"cpu": cpu, "memory": "100Mi"}}]);
    let metrics = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": pod}, "containers": containers});
    stage.create("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods", &metrics).await;
}

#[tokio::test(start_paused = true)]
async fn pods_leave_a_node_by_what_they_use_until_it_is_relieved() {
    let mut stage = Stage::new().await;
    stage.configure(&by_usage());
    define(&stage, "NodeMetrics", "nodes", "Cluster").await;
    define(&stage, "PodMetrics", "pods", "Namespaced").await;
    measured(&stage, "n1", "3").await;
    measured(&stage, "n2", "100m").await;
    for (pod, cpu) in [("a", "700m"), ("b", "700m"), ("c", "700m")] {
        stage.pod(pod, "n1", "Running").await;
        measured_pod(&stage, pod, cpu).await;
    }
    stage.start();
    stage.pass(5).await;
    assert_eq!(stage.pods().await, ["c"], "75 % to 57.5 % to 40 %");
}

#[tokio::test(start_paused = true)]
async fn without_a_metrics_server_other_strategies_go_on_and_it_is_asked_again() {
    let mut stage = Stage::new().await;
    stage.configure(&by_usage());
    stage.pod("a", "n1", "Running").await;
    stage.pod("failed", "n1", "Failed").await;
    stage.start();
    stage.pass(30).await;
    assert_eq!(stage.pods().await, ["a"]);
    let reason = "usage is not known from KubernetesMetrics, and no pods are evicted by it: the API server does not serve metrics.k8s.io; install the metrics server";
    assert_eq!(stage.event("UsageUnknown").await.as_deref(), Some(reason));

    define(&stage, "NodeMetrics", "nodes", "Cluster").await;
    define(&stage, "PodMetrics", "pods", "Namespaced").await;
    measured(&stage, "n1", "3").await;
    measured(&stage, "n2", "100m").await;
    measured_pod(&stage, "a", "1").await;
    stage.pass(40).await;
    assert_eq!(stage.pods().await, [""; 0]);
    assert!(stage.event("UsageKnown").await.is_some());
}
