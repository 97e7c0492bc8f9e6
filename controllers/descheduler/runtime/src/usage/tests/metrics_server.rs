//! The metrics server, behind the API server.

use super::*;

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

fn stage() -> Stage {
    Stage::new(UsageQuery::KubernetesMetrics, None, ServiceAccount::default())
}

fn node_metrics(name: &str, cpu: &str) -> Value {
    json!({"metadata": {"name": name}, "timestamp": "2026-01-02T03:04:00Z", "window": "20s", "usage": {"cpu": cpu, "memory": "1Gi"}})
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items})
}

fn pod_metrics(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> =
        containers.iter().map(|cpu| json!({"name": "c", "usage": {"cpu": cpu, "memory": "100Mi"}})).collect();
    json!({"metadata": {"namespace": "default", "name": name}, "containers": containers})
}

/// Names, with cpu in thousandths of a core.
type Cpu = Vec<(String, i64)>;

/// Cpu of nodes and pods.
fn cpu(stage: &Stage) -> Result<(Cpu, Cpu), String> {
    let MeasuredUsage::Amounts { nodes, pods } = stage.measured()? else { panic!() };
    let of = |usage: &koord_scheduling::ResourceVector| usage.get(ResourceId::CPU);
    let nodes = nodes.iter().map(|(name, usage)| (name.to_string(), of(usage))).collect();
    Ok((nodes, pods.iter().map(|(key, usage)| (key.to_string(), of(usage))).collect()))
}

fn named(values: &[(&str, i64)]) -> Cpu {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[tokio::test(start_paused = true)]
async fn pods_are_measured_only_on_nodes_that_strategies_want_to_relieve() {
    let mut stage = stage();
    stage.server.set(
        NODES,
        200,
        list(&[node_metrics("n1", "1500m"), node_metrics("n2", "250123456n"), node_metrics("gone", "1")]),
    );
    assert_eq!(stage.measure().await, []);
    assert_eq!(cpu(&stage), Ok((named(&[("n1", 1500), ("n2", 251)]), vec![])));
    assert_eq!(stage.server.asked(), [NODES], "of nodes alone");
    tokio::time::sleep(Duration::from_mins(10)).await;
    stage.server.set(
        NODES,
        200,
        list(&[
            json!({"metadata": {"name": "n1"}, "usage": {"cpu": "6", "memory": "1Gi"}}),
            json!({"metadata": {"name": "n2"}, "usage": {"cpu": "1", "memory": "1Gi"}}),
        ]),
    );
    stage.server.set(
        PODS,
        200,
        list(&[pod_metrics("p1", &["1", "500m"]), pod_metrics("p2", &["1"]), pod_metrics("p3", &["1"])]),
    );
    assert_eq!(stage.measure().await, []);
    assert_eq!(cpu(&stage), Ok((named(&[("n1", 6000), ("n2", 1000)]), named(&[("default/p1", 1500)]))));
    assert_eq!(stage.server.asked(), [NODES, PODS]);
}

#[tokio::test(start_paused = true)]
async fn usage_of_nodes_is_smoothed_from_samples_between_passes() {
    let mut stage = stage();
    stage.server.set(NODES, 200, list(&[node_metrics("n1", "1")]));
    stage.measure().await;
    assert_eq!(stage.collector.next(), Some(stage.clock.moment() + Duration::from_secs(15)));
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.server.set(NODES, 200, list(&[node_metrics("n1", "2")]));
    stage.collector.sample(&stage.api, &stage.cluster, &*stage.clock).await;
    stage.server.asked();
    stage.measure().await;
    assert_eq!(cpu(&stage), Ok((named(&[("n1", 1100)]), vec![])));
    assert_eq!(stage.server.asked(), [""; 0], "what was measured just now is not measured again");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_read_is_left_out_alone_and_reported_once() {
    for (wrong, reason) in [
        (json!({"metadata": {"name": "n1"}, "usage": {"cpu": "-1", "memory": "1Gi"}}), "n1: its cpu is -1, below 0"),
        (json!({"metadata": {"name": "n1"}, "usage": {"cpu": "1"}}), "n1: its memory is missing"),
        (json!({"metadata": {"name": "n1"}, "usage": {"cpu": "many", "memory": "1Gi"}}), "quantities must match"),
        (json!({"metadata": {"name": "n1"}}), "missing field `usage`"),
        (json!([]), "invalid length 0"),
        (
            with(&node_metrics("n1", "1"), &json!({"timestamp": "2026-01-02T02:00:00Z"})),
            "node n1: it was last measured at 2026-01-02T02:00:00Z",
        ),
    ] {
        let mut stage = stage();
        stage.server.set(NODES, 200, list(&[wrong.clone(), node_metrics("n2", "1")]));
        let reports = stage.measure().await;
        let [UsageReport::LeftOut { count: 1, reason: found, .. }] = &reports[..] else { panic!("{reports:?}") };
        assert!(found.contains(reason), "{found}");
        assert_eq!(cpu(&stage), Ok((named(&[("n2", 1000)]), vec![])), "{wrong}");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(stage.measure().await, [], "as before");
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.server.set(NODES, 200, list(&[node_metrics("n1", "1"), node_metrics("n2", "1")]));
        assert_eq!(stage.measure().await, [UsageReport::Recovered { query: UsageQuery::KubernetesMetrics }]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_left_alone_for_a_while() {
    for (code, body, reason) in [
        (404, "404 page not found", "the API server does not serve metrics.k8s.io; install the metrics server"),
        (503, "service unavailable", "the API server answered 503: service unavailable"),
        (
            403,
            r#"{"kind": "Status", "message": "nodes.metrics.k8s.io is forbidden"}"#,
            "nodes.metrics.k8s.io is forbidden",
        ),
        (200, "<html>", "the answer cannot be read: expected value at line 1 column 1"),
        (0, "", "no answer within 5 s"),
    ] {
        let mut stage = stage();
        stage.server.set(NODES, code, body);
        let failed = UsageReport::Failed { query: UsageQuery::KubernetesMetrics, reason: Arc::from(reason) };
        assert_eq!(stage.measure().await, [failed]);
        assert_eq!(stage.measured(), Err(reason.to_owned()));
        stage.server.set(NODES, 200, list(&[node_metrics("n1", "1")]));
        tokio::time::sleep(Duration::from_secs(10)).await;
        stage.server.asked();
        assert_eq!(stage.measure().await, []);
        assert_eq!((stage.measured(), stage.server.asked()), (Err(reason.to_owned()), vec![]));
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(stage.measure().await, [UsageReport::Recovered { query: UsageQuery::KubernetesMetrics }]);
        assert_eq!(cpu(&stage), Ok((named(&[("n1", 1000)]), vec![])));
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_usage_of_pods_nobody_is_evicted() {
    let mut stage = stage();
    stage.server.set(NODES, 200, list(&[node_metrics("n1", "6")]));
    stage.server.set(PODS, 500, "");
    let reports = stage.measure().await;
    assert!(matches!(&reports[..], [UsageReport::Failed { .. }]), "{reports:?}");
    assert_eq!(stage.measured(), Err("the API server answered 500".to_owned()));
}
