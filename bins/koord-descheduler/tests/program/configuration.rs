//! A configuration that changes while the program runs.

use super::*;

fn removing_failed(more: &str) -> String {
    format!(
        "{more}profiles: [{{name: p, plugins: {{deschedule: {{enabled: [{{name: RemoveFailedPods}}]}}, {EVICTS}}}, pluginConfig: [{{name: RemoveFailedPods, args: {{minPodLifetimeSeconds: 0}}}}]}}]\n"
    )
}

#[tokio::test(start_paused = true)]
async fn a_change_is_in_effect_from_the_next_pass_on_and_one_that_is_wrong_changes_nothing() {
    let mut stage = Stage::new().await;
    stage.configure(&format!("profiles: [{{name: p, plugins: {{{EVICTS}}}}}]\n"));
    stage.pod("a", "n1", "Failed").await;
    stage.start();
    stage.pass(30).await;
    assert_eq!(stage.pods().await, ["a"], "no strategy is enabled");

    stage.configure(&removing_failed(""));
    stage.pass(20).await;
    assert_eq!(stage.pods().await, [""; 0]);
    let taken = "the configuration has changed, and is in effect from the next pass on: profiles";
    assert_eq!(stage.event("ConfigurationTaken").await.as_deref(), Some(taken));

    stage.configure(&removing_failed("dryRuns: true\n"));
    stage.pass(20).await;
    let refused = stage.event("ConfigurationRefused").await.unwrap();
    assert!(
        refused.starts_with("the configuration has changed and cannot be used; the one before goes on: "),
        "{refused}"
    );
    assert!(refused.ends_with("config.yaml:4: dryRuns: unknown field; did you mean dryRun?"), "{refused}");
    stage.pod("b", "n1", "Failed").await;
    stage.pass(15).await;
    assert_eq!(stage.pods().await, [""; 0], "the one before goes on");

    stage.configure(&removing_failed("dryRun: true\nleaderElection: {leaseDuration: 40s}\n"));
    stage.pod("c", "n1", "Failed").await;
    stage.pass(20).await;
    assert_eq!(stage.pods().await, [""; 0], "nothing of it is taken");
    let restart = stage.event("ConfigurationNeedsRestart").await.unwrap();
    assert!(restart.contains("leaderElection can only change when the program starts"), "{restart}");

    stage.configure(&removing_failed("dryRun: true\n"));
    stage.pass(15).await;
    stage.pod("d", "n1", "Failed").await;
    stage.pass(30).await;
    assert_eq!(stage.pods().await, ["d"], "a dry run evicts nothing");
}

/// NodeMetrics are not watched before a strategy reads them.
#[tokio::test(start_paused = true)]
async fn a_strategy_that_reads_further_kinds_finds_their_objects() {
    let mut stage = Stage::new().await;
    stage.configure(&removing_failed(""));
    for name in ["a", "b", "c"] {
        stage.pod(name, "n1", "Running").await;
    }
    let metric = |node: &str, cpu: &str| {
        let usage = json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
        let pod =
            json!({"namespace": "default", "name": "a", "podUsage": {"resources": {"cpu": "1", "memory": "1Gi"}}});
        let pods = if node == "n1" { vec![pod] } else { vec![] };
        let status = json!({
            "updateTime": (START + jiff::SignedDuration::from_secs(60)).to_string(),
            "nodeMetric": {"nodeUsage": usage, "systemUsage": usage}, "podsMetric": pods,
        });
        json!({
            "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": node}, "spec": {}, "status": status,
        })
    };
    for (node, cpu) in [("n1", "2"), ("n2", "100m")] {
        let object = stage.create("/apis/slo.koordinator.sh/v1alpha1/nodemetrics", &metric(node, cpu)).await;
        let path = format!(
            "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{}/status",
            object["metadata"]["name"].as_str().unwrap()
        );
        stage.send(Method::PATCH, &path, &json!({"status": metric(node, cpu)["status"]})).await;
    }
    stage.start();
    stage.pass(30).await;
    assert_eq!(stage.pods().await, ["a", "b", "c"]);
    stage.configure(&format!(
        "profiles: [{{name: p, plugins: {{balance: {{enabled: [{{name: LowNodeLoad}}]}}, {EVICTS}}}, pluginConfig: [{{name: LowNodeLoad, args: {{lowThresholds: {{cpu: 20}}, highThresholds: {{cpu: 50}}, anomalyCondition: {{consecutiveAbnormalities: 1}}}}}}]}}]\n"
    ));
    stage.pass(30).await;
    assert_eq!(stage.pods().await, ["b", "c"], "{:?}", stage.event("ConfigurationTaken").await);
}

#[tokio::test(start_paused = true)]
async fn a_setting_of_a_node_that_cannot_be_read_is_reported_once_per_edit_and_the_pass_goes_on() {
    let mut stage = Stage::new().await;
    stage.pod("a", "n1", "Failed").await;
    stage.configure(&removing_failed(""));
    let path = "/api/v1/nodes/n1";
    for (edit, events) in [("no json", 1), ("no json", 1), ("[]", 2), (r#"{"cpu":"4"}"#, 2)] {
        let annotations = json!({"node.koordinator.sh/raw-allocatable": edit});
        stage.send(Method::PATCH, path, &json!({"metadata": {"annotations": annotations}})).await;
        if stage.running.is_none() {
            stage.start();
        }
        stage.pass(30).await;
        assert_eq!(stage.pods().await, [""; 0]);
        let (_, list) = stage.send(Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events", &Value::Null).await;
        let about_nodes = list["items"].as_array().unwrap().iter().filter(|event| event["regarding"]["kind"] == "Node");
        let notes: Vec<&str> = about_nodes.map(|event| event["note"].as_str().unwrap()).collect();
        assert_eq!(notes.len(), events, "{notes:?}");
        assert!(notes.iter().all(|note| note.contains("node.koordinator.sh/raw-allocatable: \"")), "{notes:?}");
    }
}
