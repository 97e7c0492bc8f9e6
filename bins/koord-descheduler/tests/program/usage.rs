//! Usage of the metrics server, whose objects the embedded API server has as custom resources.

use koord_descheduler_testing::metrics_server::{self, node_usage, pod_usage};

use super::*;

/// By usage: below 20 % of cpu a node is underutilized, above 50 % it is overutilized. Failed pods are removed, too.
fn by_usage() -> String {
    format!(
        "profiles: [{{name: p, plugins: {{deschedule: {{enabled: [{{name: RemoveFailedPods}}]}}, balance: {{enabled: [{{name: LowNodeUtilization}}]}}, {EVICTS}}}, pluginConfig: [{{name: RemoveFailedPods, args: {{minPodLifetimeSeconds: 0}}}}, {{name: LowNodeUtilization, args: {{thresholds: {{cpu: 20}}, targetThresholds: {{cpu: 50}}, metricsUtilization: {{source: KubernetesMetrics}}}}}}]}}]\n"
    )
}

/// The API server serves metrics from now on.
async fn serve_metrics(stage: &Stage) {
    for definition in metrics_server::definitions() {
        stage.create(DEFINITIONS, &definition).await;
    }
}

async fn measured(stage: &Stage, (path, metrics): (&str, Value)) {
    stage.create(path, &metrics).await;
}

#[tokio::test(start_paused = true)]
async fn pods_leave_a_node_by_what_they_use_until_it_is_relieved() {
    let mut stage = Stage::new().await;
    stage.configure(&by_usage());
    serve_metrics(&stage).await;
    measured(&stage, node_usage("n1", "3")).await;
    measured(&stage, node_usage("n2", "100m")).await;
    for (pod, cpu) in [("a", "700m"), ("b", "700m"), ("c", "700m")] {
        stage.pod(pod, "n1", "Running").await;
        measured(&stage, pod_usage(pod, cpu)).await;
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

    serve_metrics(&stage).await;
    measured(&stage, node_usage("n1", "3")).await;
    measured(&stage, node_usage("n2", "100m")).await;
    measured(&stage, pod_usage("a", "1")).await;
    stage.pass(40).await;
    assert_eq!(stage.pods().await, [""; 0]);
    assert!(stage.event("UsageKnown").await.is_some());
}
