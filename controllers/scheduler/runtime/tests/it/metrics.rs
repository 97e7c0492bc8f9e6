//! What the scheduler measures.

use std::sync::Arc;

use koord_runtime::metrics::Audience;
use koord_scheduler_framework::{Diagnostics, Plugin, Registration, cluster::Cluster, columns::Row};

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
    stage.pass(6).await;
    let text = metrics.text(&[Audience::Runtime]);
    let has = |line: &str| assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="scheduled"} 1"#);
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="unschedulable"} 1"#);
    has(r#"scheduler_schedule_attempts_total{profile="koord-scheduler",result="error"} 0"#);
    has(r#"scheduler_scheduling_attempt_duration_seconds_count{profile="koord-scheduler",result="scheduled"} 1"#);
    has("scheduler_scheduling_algorithm_duration_seconds_count 2");
    has("scheduler_pod_scheduling_evaluated_nodes_sum 1");
    has("scheduler_pod_scheduling_feasible_nodes_sum 1");
    has("scheduler_pod_scheduling_attempts_sum 1");
    has(r#"scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1"#);
    has("scheduler_preemption_attempts_total 1");
    has(r#"scheduler_pending_pods{queue="unschedulable"} 1"#);
    has(r#"scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="koord-scheduler"} 1"#);
    has(r#"scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2"#);
    has(r#"scheduler_cache_size{type="nodes"} 1"#);
    has(r#"scheduler_cache_size{type="pods"} 1"#);
    has(r#"koord_scheduler_pending_requests{queue="unschedulable",resource="cpu"} 2"#);
    let point = |point: &str, status: &str, times: u32| {
        let labels = format!(r#"extension_point="{point}",profile="koord-scheduler",status="{status}""#);
        has(&format!("scheduler_framework_extension_point_duration_seconds_count{{{labels}}} {times}"));
    };
    for name in ["Filter", "Reserve", "Permit", "Bind"] {
        point(name, "Success", 1);
    }
    point("Filter", "Unschedulable", 1);
    point("PostFilter", "Unschedulable", 1);

    stage.send(Method::DELETE, &format!("{PODS}/fits"), &json!({"gracePeriodSeconds": 0}));
    stage.pass(5).await;
    assert_eq!(stage.place("waits"), "only");
    let text = metrics.text(&[Audience::Runtime]);
    let has = |line: &str| assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    has(r#"scheduler_pod_scheduling_sli_duration_seconds_count{attempts="2"} 1"#);
    has(r#"scheduler_pending_pods{queue="unschedulable"} 0"#);
    has(r#"scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="koord-scheduler"} 0"#);
    has(r#"scheduler_cache_size{type="assumed_pods"} 0"#);
    stage.pass(2).await;
    assert!(!metrics.text(&[Audience::Runtime]).contains("koord_scheduler_pending_requests{"), "nobody waits");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn plugins_are_measured_in_the_tenth_attempt() {
    let stage = Stage::new();
    stage.add_node("only", "64");
    let (stop, (manager, metrics)) = (CancellationToken::new(), stage.measured("one"));
    let running = tokio::spawn(manager.run(stop.clone()));
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        stage.add_pod(name, "1");
    }
    stage.pass(5).await;
    let family = "scheduler_plugin_execution_duration_seconds";
    assert!(!metrics.text(&[Audience::Runtime]).contains(&format!("{family}_count")), "nine attempts");
    stage.add_pod("j", "1");
    stage.pass(5).await;
    assert_eq!(stage.place("j"), "only");
    let text = metrics.text(&[Audience::Runtime]);
    let line = r#"{extension_point="Filter",plugin="NodeResourcesFit",status="Success"} 1"#;
    assert!(text.lines().any(|known| known == format!("{family}_count{line}")), "{text}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Decides by a measure that is always too old.
struct Outdated;

impl Plugin for Outdated {
    fn name(&self) -> &'static str {
        "Outdated"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).diagnostics(&self)
    }
}

impl Diagnostics for Outdated {
    fn is_input_stale(&self, _: &Cluster, _: Row) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn placements_by_a_measure_that_is_too_old_are_counted() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "3");
    stage.add_pod("waits", "3");
    let mut profile = default_profile("koord-scheduler").unwrap();
    profile.add(Arc::new(Outdated).register(), 0).unwrap();
    let client = Client::new(stage.server.router(), "default");
    let (stop, (manager, metrics, _)) = (CancellationToken::new(), stage.program(client, profile, "one"));
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let text = metrics.text(&[Audience::Runtime]);
    let line = r#"koord_scheduler_stale_placements_total{plugin="Outdated",profile="koord-scheduler"} 1"#;
    assert!(text.lines().any(|known| known == line), "{text}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
