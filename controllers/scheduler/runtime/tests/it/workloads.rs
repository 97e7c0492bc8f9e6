//! What the workload auditor measures.

use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_runtime::metrics::Audience;
use koord_scheduler_runtime::AuditorSettings;
use koord_types::reservation::Reservation;
use tokio::task::JoinHandle;

use super::{explanations::profile_with, *};

impl Stage {
    /// A pod of the blue team with the priority of production.
    fn add_urgent(&self, name: &str, cpu: &str, annotations: &Value) {
        let class = json!({"metadata": {"name": "koord-prod"}, "value": 9500});
        self.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let mut spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        spec["priorityClassName"] = json!("koord-prod");
        let metadata = json!({"name": name, "labels": {"team": "blue"}, "annotations": annotations});
        let pod = self.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
        assert_eq!(pod["spec"]["priority"], 9500, "{pod}");
    }

    fn delete_at_once(&self, name: &str) {
        self.send(Method::DELETE, &format!("{PODS}/{name}"), &json!({"gracePeriodSeconds": 0}));
    }
}

/// A scheduler with gangs and reservations that audits workloads.
struct Program {
    stop: CancellationToken,
    running: JoinHandle<()>,
    metrics: Metrics,
}

impl Program {
    /// One that leads, if no other does. It knows by now that the server has no PodGroups.
    async fn of(stage: &Stage, identity: &str) -> Self {
        let metrics = Metrics::new().unwrap();
        let labels = vec![("team".to_owned(), "team".to_owned())];
        let settings = AuditorSettings { labels, ..AuditorSettings::default() };
        let audited = metrics.clone();
        let made = move |scheduler: Scheduler| scheduler.auditing_workloads(settings, &audited).unwrap();
        let (manager, ..) = stage.program_as(
            made,
            Client::new(stage.server.router(), "default"),
            profile_with(&["Coscheduling", "Reservation"]),
            identity,
        );
        let stop = CancellationToken::new();
        let run = manager.run(stop.clone());
        let program = Self { stop, running: tokio::spawn(async { run.await.unwrap() }), metrics };
        stage.pass(60).await;
        program
    }

    /// The value of a series of the auditor, for pods of the team that are of production.
    fn value(&self, name: &str, labels: &str) -> Option<f64> {
        let text = self.metrics.text(&[Audience::Runtime]);
        let series = format!("scheduler_workload_auditor_{name}{{{labels}priority=\"koord-prod\",team=\"blue\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    /// How often an event has come before this outcome.
    fn times(&self, event: &str, outcome: &str) -> Option<f64> {
        let labels = format!("event_type=\"{event}\",outcome=\"{outcome}\",");
        self.value("scheduling_events_before_outcome_sum", &labels)
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_preemption_is_measured_from_the_eviction_to_the_node() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("low", "3");
    let program = Program::of(&stage, "one").await;
    stage.add_urgent("high", "3", &json!({}));
    stage.pass(8).await;
    assert_ne!(stage.place("high"), "only", "its victim has time to end");
    assert_eq!(program.value("preemption_to_victim_deleted_seconds_count", ""), None);
    stage.delete_at_once("low");
    stage.pass(5).await;
    assert_eq!(stage.place("high"), "only");

    let lasted = program.value("preemption_to_victim_deleted_seconds_sum", "").unwrap();
    assert!((7.0..=9.0).contains(&lasted), "{lasted}");
    assert_eq!(program.value("preemption_victim_deleting_retries_count", ""), Some(1.0));
    assert_eq!(program.value("victim_reschedule_duration_seconds_count", ""), Some(1.0));
    assert_eq!(program.value("preemption_cycle_interrupted_seconds_count", ""), None);
    assert_eq!(program.value("repeated_preemptions_total", ""), None);
    for event in ["create", "preemptNominated", "victimAllDeleted", "scheduled"] {
        assert_eq!(program.times(event, "scheduled"), Some(1.0), "{event}");
    }
    assert_eq!(program.times("preemptFailure", "scheduled"), None);
    let text = program.metrics.text(&[Audience::Runtime]);
    let low = r#"outcome="scheduled",priority="",team=""} 1"#;
    assert!(text.lines().any(|line| line.ends_with(low)), "a pod without a class, that was placed at once\n{text}");
    assert!(text.contains(r#"workload_auditor_record_method_duration_seconds_count{method="RecordDiagnosis"}"#));
    program.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_gang_is_measured_as_one_and_a_pod_that_is_deleted_as_deleted() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("low", "3");
    let program = Program::of(&stage, "one").await;
    let gang = json!({"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"});
    stage.add_urgent("a", "1500m", &gang);
    stage.pass(2).await;
    stage.add_urgent("b", "1500m", &gang);
    stage.add_urgent("huge", "9", &json!({}));
    stage.pass(5).await;
    stage.delete_at_once("huge");
    stage.delete_at_once("low");
    stage.pass(30).await;
    assert_eq!((stage.place("a"), stage.place("b")), ("only".to_owned(), "only".to_owned()));
    for event in ["create", "gangMinMemberSatisfied", "scheduled"] {
        assert_eq!(program.times(event, "gangScheduled"), Some(1.0), "{event}");
    }
    assert!(program.times("preemptNominated", "gangScheduled") >= Some(1.0));
    assert!(program.times("gangAllPodsAlreadyAttempted", "gangScheduled") >= Some(1.0));
    assert_eq!(program.times("create", "deleted"), Some(1.0));
    assert_eq!(program.times("preemptFailure", "deleted"), Some(1.0));
    assert_eq!(program.times("create", "scheduled"), None, "members do not count alone");
    stage.add_urgent("late", "500m", &gang);
    stage.pass(5).await;
    assert_eq!((stage.place("late").as_str(), program.times("create", "scheduled")), ("only", Some(1.0)));
    program.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_only_follows_measures_nothing() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let leader = Program::of(&stage, "one").await;
    let standby = Program::of(&stage, "two").await;
    stage.add_urgent("a", "1", &json!({}));
    stage.pass(5).await;
    assert_eq!((leader.times("create", "scheduled"), stage.place("a").as_str()), (Some(1.0), "only"));
    let text = standby.metrics.text(&[Audience::Runtime]);
    assert!(!text.contains("scheduler_workload_auditor_"), "{text}");
    // What waits when it begins to lead is new to it.
    stage.add_urgent("waits", "9", &json!({}));
    stage.pass(5).await;
    leader.end().await;
    stage.pass(30).await;
    stage.delete_at_once("waits");
    stage.pass(5).await;
    assert_eq!((standby.times("create", "deleted"), standby.times("create", "scheduled")), (Some(1.0), None));
    standby.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_audited_like_a_pod() {
    const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
    let stage = Stage::new();
    let definition = custom_resource_definition(&[Declared::of::<Reservation>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    stage.add_node("only", "4");
    let program = Program::of(&stage, "one").await;
    for (name, cpu) in [("fits", "2"), ("huge", "9")] {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({"schedulerName": "koord-scheduler", "priority": 9500, "containers": [container]});
        let template = json!({"metadata": {"labels": {"team": "blue"}}, "spec": spec});
        let owners = json!([{"labelSelector": {"matchLabels": {"app": "web"}}}]);
        let reservation = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": name}, "spec": {"template": template, "owners": owners, "ttl": "1h"}});
        let made = stage.send(Method::POST, RESERVATIONS, &reservation);
        assert_eq!(made["metadata"]["name"], name, "{made}");
    }
    stage.pass(5).await;
    stage.send(Method::DELETE, &format!("{RESERVATIONS}/huge"), &json!({}));
    stage.pass(5).await;
    assert_eq!(program.times("scheduled", "scheduled"), Some(1.0));
    assert_eq!((program.times("create", "scheduled"), program.times("create", "deleted")), (Some(1.0), Some(1.0)));
    program.end().await;
}
