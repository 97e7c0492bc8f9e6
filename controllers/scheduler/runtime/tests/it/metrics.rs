//! What the scheduler measures.

use koord_runtime::metrics::Audience;

use super::*;

#[tokio::test(start_paused = true)]
async fn attempts_queues_and_sizes_are_measured() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("fits", "3");
    let (stop, (manager, metrics)) = (CancellationToken::new(), stage.measured("one"));
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    stage.add_pod("waits", "2");
    stage.pass(5).await;
    let text = metrics.text(&[Audience::Runtime]);
    let has = |line: &str| assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="scheduled"} 1"#);
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="unschedulable"} 1"#);
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="error"} 0"#);
    has(r#"scheduler_scheduling_attempt_duration_seconds_count{profile="koord-scheduler",result="scheduled"} 1"#);
    has("scheduler_scheduling_algorithm_duration_seconds_count 2");
    has("scheduler_pod_scheduling_evaluated_nodes_sum 2");
    has("scheduler_pod_scheduling_feasible_nodes_sum 1");
    has("scheduler_pod_scheduling_attempts_sum 1");
    has(r#"scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1"#);
    has("scheduler_preemption_attempts_total 1");
    has(r#"scheduler_pending_pods{queue="unschedulable"} 1"#);
    has(r#"scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="koord-scheduler"} 1"#);
    has(r#"scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2"#);
    has(r#"scheduler_cache_size{type="nodes"} 1"#);
    has(r#"scheduler_cache_size{type="pods"} 1"#);

    stage.send(Method::DELETE, &format!("{PODS}/fits"), &json!({"gracePeriodSeconds": 0}));
    stage.pass(5).await;
    assert_eq!(stage.place("waits"), "only");
    let text = metrics.text(&[Audience::Runtime]);
    let has = |line: &str| assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    has(r#"scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"} 1"#);
    has(r#"scheduler_pending_pods{queue="unschedulable"} 0"#);
    has(r#"scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="koord-scheduler"} 0"#);
    has(r#"scheduler_cache_size{type="assumed_pods"} 0"#);
    stop.cancel();
    running.await.unwrap().unwrap();
}
