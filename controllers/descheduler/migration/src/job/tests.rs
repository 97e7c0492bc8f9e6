use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ObjectReference;
use koord_core::write::Answer;
use koord_descheduler_framework::pod::Phase as PodPhase;
use koord_types::{pod_migration_job::PodMigrationJob, reservation::Reservation};
use serde_json::{Value, json};

use super::*;

/// A job, read from the API's JSON, and what is seen.
struct Scene {
    object: PodMigrationJob,
    uid: Uid,
    template: Option<Value>,
    seen: Seen,
    settings: Settings,
    now: Timestamp,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

fn pod(uid: &str, node: &str) -> JobPod {
    JobPod { uid: Uid::from(uid), node: node.into(), is_ready: true, ..JobPod::default() }
}

impl Scene {
    /// A running job of `default/a` ten seconds old.
    fn new(mode: &str, patch: &Value) -> Self {
        let reference = json!({"namespace": "default", "name": "a", "uid": "a"});
        let job = json!({
            "metadata": {"name": "j", "uid": "j", "creationTimestamp": at(0).to_string()},
            "spec": {"mode": mode, "podRef": reference, "ttl": "5m"},
            "status": {"phase": "Running"},
        });
        let object = koord_descheduler_testing::with(&job, patch);
        let template = object.pointer("/spec/reservationOptions/template").cloned();
        let settings = Settings::of(JobMode::ReservationFirst, EvictionPolicy::Eviction, false);
        let seen = Seen { pod: Lookup::Found(pod("a", "n1")), ..Seen::default() };
        Self {
            object: serde_json::from_value(object).unwrap(),
            uid: Uid::from("j"),
            template,
            seen,
            settings,
            now: at(10),
        }
    }

    fn job(&self) -> Job<'_> {
        let metadata = &self.object.metadata;
        let annotation = |key: &str| metadata.annotations.as_ref()?.get(key).map(String::as_str);
        Job {
            name: "j",
            uid: &self.uid,
            created: at(0),
            has_passed: annotation(crate::jobs::PASSED_ARBITRATION) == Some("true"),
            is_exempt: annotation("descheduler.alpha.kubernetes.io/evict").is_some(),
            evict_reason: annotation(crate::jobs::EVICT_REASON),
            evict_trigger: annotation(crate::jobs::EVICT_TRIGGER),
            evict_policy: metadata.labels.as_ref().and_then(|labels| labels.get(EVICT_POLICY)).map(String::as_str),
            spec: &self.object.spec,
            template: self.template.as_ref(),
            status: &self.object.status,
        }
    }

    fn step(&self) -> Decision {
        step(&self.job(), &self.seen, &self.settings, self.now)
    }

    /// `phase/status/reason`, as the decision leaves it.
    fn ends(&self) -> String {
        let decision = self.step();
        let status = decision.status.as_ref().unwrap_or(&self.object.status);
        let phase = status.phase.as_ref().map_or("-", |phase| phase.as_str());
        let text = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        format!("{phase}/{}/{}", text(&status.status), text(&status.reason))
    }

    fn reserved(mut self, status: &Value) -> Self {
        let object = json!({"spec": {"template": {}, "owners": []}, "status": status});
        let Reservation { status, .. } = serde_json::from_value(object).unwrap();
        self.seen.reservation = Lookup::Found(JobReservation {
            is_generated: true,
            has_order: true,
            phase: status.phase,
            node: status.node_name,
            conditions: status.conditions,
            current_owners: status.current_owners,
            ..JobReservation::default()
        });
        self
    }
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "lastTransitionTime": at(5).to_string()})
}

/// A job with a Reservation, whose conditions are these.
fn with_reservation(conditions: &[Value]) -> Value {
    let created = condition("ReservationCreated", "True", "");
    let conditions: Vec<Value> = std::iter::once(created).chain(conditions.iter().cloned()).collect();
    json!({
        "spec": {"reservationOptions": {"reservationRef": {"name": "r"}}},
        "status": {"status": "ReservationCreated", "conditions": conditions},
    })
}

fn scheduled(phase: &str, owners: &[&str]) -> Value {
    let owners: Vec<Value> =
        owners.iter().map(|name| json!({"namespace": "default", "name": name, "uid": name})).collect();
    let conditions = [condition("Scheduled", "True", "Scheduled"), condition("Ready", "True", "Available")];
    json!({"phase": phase, "nodeName": "n2", "conditions": conditions, "currentOwners": owners})
}

#[test]
fn jobs_that_have_ended_wait_or_are_paused_are_left_alone() {
    let pending = json!({"status": {"phase": null}});
    for patch in [
        json!({"status": {"phase": "Succeeded", "status": "Complete"}}),
        json!({"status": {"phase": "Aborted"}}),
        json!({"status": {"phase": "Whatever"}}),
        json!({"spec": {"paused": true}}),
        pending.clone(),
        json!({"metadata": {"annotations": {crate::jobs::PASSED_ARBITRATION: "false"}}, "status": {"phase": "Pending"}}),
    ] {
        let mut scene = Scene::new("EvictDirectly", &patch);
        for seconds in [10, 400] {
            scene.now = at(seconds);
            // Nothing but the end of its time, five minutes after its limit.
            let again = Some(SignedDuration::from_secs(600 - seconds));
            assert_eq!(scene.step(), Decision { again, ..Decision::default() }, "{patch}");
        }
        scene.now = at(600);
        assert!(scene.step().deletes_job, "{patch}");
    }
    let passed =
        json!({"metadata": {"annotations": {crate::jobs::PASSED_ARBITRATION: "true"}}, "status": {"phase": null}});
    assert_eq!(Scene::new("EvictDirectly", &passed).ends(), "Running/-/-");
}

#[test]
fn a_job_begins_when_it_knows_its_pod() {
    let passed =
        json!({"metadata": {"annotations": {crate::jobs::PASSED_ARBITRATION: "true"}}, "status": {"phase": "Pending"}});
    let begin = |change: &dyn Fn(&mut ObjectReference), pod: Lookup<JobPod>| {
        let mut scene = Scene::new("EvictDirectly", &passed);
        change(&mut scene.object.spec.pod_ref);
        scene.seen.pod = pod;
        scene
    };
    let known: &dyn Fn(&mut ObjectReference) = &|_| {};
    assert_eq!(begin(known, Lookup::Absent).ends(), "Failed/-/MissingPod");
    assert_eq!(begin(known, Lookup::Found(pod("other", "n1"))).ends(), "Failed/-/MissingPod");
    let no_name: &dyn Fn(&mut ObjectReference) = &|pod| pod.name = None;
    let no_namespace: &dyn Fn(&mut ObjectReference) = &|pod| pod.namespace = Some(String::new());
    for lacking in [no_name, no_namespace] {
        assert_eq!(begin(lacking, Lookup::Found(pod("a", "n1"))).ends(), "Failed/-/InvalidPodRef");
    }
    let unknown = begin(known, Lookup::Unknown).step();
    assert_eq!(unknown.fetch.map(|fetch| fetch.key), Some(ObjectKey::new("default", "a")));
    let found = begin(&|pod| pod.uid = None, Lookup::Found(pod("a", "n1"))).step();
    assert_eq!((found.pod_uid, found.status), (Some(Uid::from("a")), None));
}

#[test]
fn what_becomes_of_the_reservation_decides() {
    let unschedulable = |phase: &str| {
        let mut condition = condition("Scheduled", "False", "Unschedulable");
        condition["message"] = json!("0/2 nodes are available");
        json!({"phase": phase, "conditions": [condition]})
    };
    let failed = |reason: &str| json!({"phase": "Failed", "conditions": [condition("Ready", "False", reason)]});
    let mut lost = scheduled("Failed", &[]);
    lost["conditions"][1] = condition("Ready", "False", "NodeLost");
    let table = [
        (json!({}), "Running/ReservationCreated/-"),
        (json!({"phase": "Pending"}), "Running/ReservationCreated/-"),
        (unschedulable("Pending"), "Running/ReservationScheduled/Unschedulable"),
        (json!({"phase": "Waiting"}), "Running/ReservationCreated/-"),
        (json!({"phase": "Available"}), "Failed/ReservationCreated/Unschedulable"),
        (failed("Expired"), "Failed/ReservationCreated/ReservationExpired"),
        (failed("Other"), "Failed/ReservationCreated/Unschedulable"),
        (lost, "Failed/ReservationCreated/ReservationExpired"),
        (scheduled("Available", &[]), "Running/ReservationScheduled/-"),
    ];
    for (reservation, expected) in table {
        let scene = Scene::new("ReservationFirst", &with_reservation(&[])).reserved(&reservation);
        assert_eq!(scene.ends(), expected, "{reservation}");
        let fails = expected.starts_with("Failed");
        assert_eq!(scene.step().deletes_reservation, fails, "{reservation}");
    }
    let mut own_node = Scene::new("ReservationFirst", &with_reservation(&[])).reserved(&scheduled("Available", &[]));
    own_node.seen.pod = Lookup::Found(pod("a", "n2"));
    assert_eq!(own_node.ends(), "Failed/ReservationCreated/ForbiddenMigratePod");
    own_node.seen.pod = Lookup::Found(pod("other", "n2"));
    assert_eq!(own_node.ends(), "Running/ReservationScheduled/-", "the pod is another, which step 10 will find");
    own_node.seen.reservation = Lookup::Absent;
    assert_eq!(own_node.ends(), "Failed/ReservationCreated/MissingReservation");
    own_node.seen.reservation = Lookup::Unknown;
    assert_eq!(own_node.step().fetch.map(|fetch| fetch.of), Some(Fetched::Reservation));
}

/// `spec/descheduler.md` 7: no Eviction condition, and the status stays.
#[test]
fn a_reservation_that_another_pod_has_taken_forbids_the_eviction() {
    let mut patch = with_reservation(&[condition("ReservationScheduled", "True", "")]);
    patch["status"]["nodeName"] = json!("n2");
    patch["status"]["status"] = json!("ReservationScheduled");
    let scene = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Succeeded", &["other"]));
    assert_eq!(scene.ends(), "Failed/ReservationScheduled/ForbiddenMigratePod");
    let decision = scene.step();
    assert_eq!(condition_of(&decision, "Eviction"), None);
    assert!(!decision.deletes_reservation && decision.eviction.is_none(), "a pod uses it");
    let free = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Available", &[]));
    assert_eq!(condition_of(&free.step(), "Eviction").as_deref(), Some("Unknown"));
}

fn condition_of(decision: &Decision, type_: &str) -> Option<String> {
    let status = decision.status.as_ref()?;
    let found = status.conditions.iter().find(|condition| condition.type_.as_str() == type_)?;
    Some(found.status.clone())
}

#[test]
fn an_eviction_is_announced_then_sent_then_waited_for() {
    let mut scene = Scene::new("EvictDirectly", &json!({}));
    let announced = scene.step();
    assert_eq!((condition_of(&announced, "Eviction").as_deref(), announced.eviction), (Some("Unknown"), None));
    let eviction =
        |status: &str, reason: &str| json!({"status": {"conditions": [condition("Eviction", status, reason)]}});
    scene = Scene::new("EvictDirectly", &eviction("Unknown", ""));
    let sent = scene.step();
    assert_eq!((sent.status, sent.eviction.map(|request| request.uid)), (None, Some(Uid::from("a"))));
    // It never counts against its own limiter.
    scene.seen.limited = Some(std::time::Duration::from_mins(1));
    assert!(scene.step().eviction.is_some());
    for (seen, pod, expected) in [
        (EvictionSeen::Accepted, Lookup::Found(pod("a", "n1")), "Running/Eviction/Evicting"),
        (
            EvictionSeen::Pending,
            Lookup::Found(JobPod { is_deleting: true, ..pod("a", "n1") }),
            "Running/Eviction/Evicting",
        ),
        (EvictionSeen::Pending, Lookup::Unknown, "Running/Eviction/Evicting"),
        (EvictionSeen::Pending, Lookup::Found(pod("other", "n1")), "Running/Eviction/Evicting"),
        (EvictionSeen::Refused("why".to_owned()), Lookup::Found(pod("a", "n1")), "Running/-/-"),
    ] {
        (scene.seen.eviction, scene.seen.pod) = (seen, pod);
        assert_eq!(scene.ends(), expected, "{:?}", scene.seen);
    }
    let mut refused = Scene::new("EvictDirectly", &eviction("False", "FailedEvict"));
    refused.seen.eviction = EvictionSeen::Accepted;
    assert_eq!(refused.ends(), "Running/Eviction/Evicting");
    refused.seen.pod = Lookup::Unknown;
    assert_eq!(refused.ends(), "Running/Eviction/Evicting");
    let evicting = Scene::new("EvictDirectly", &eviction("False", "Evicting"));
    refused = Scene { seen: refused.seen, ..evicting };
    assert_eq!(refused.ends(), "Running/Eviction/EvictComplete");
    let mut gone = Scene::new("EvictDirectly", &json!({}));
    gone.seen.pod = Lookup::Absent;
    assert_eq!(gone.ends(), "Failed/-/MissingPod", "nobody has evicted it");
}

/// D60 descheduler#1880.
#[test]
fn a_pod_that_ends_after_its_eviction_and_is_not_deleted_is_evicted_or_an_error() {
    let evicting = json!({"status": {"status": "Eviction", "reason": "Evicting", "conditions": [condition("Eviction", "False", "Evicting")]}});
    let mut scene = Scene::new("EvictDirectly", &evicting);
    let mut ends = |phase: PodPhase, is_deleting: bool, seconds: i64| {
        scene.seen.pod = Lookup::Found(JobPod { phase, is_deleting, ..pod("a", "n1") });
        scene.now = at(seconds);
        scene.ends()
    };
    for (phase, is_deleting, seconds, expected) in [
        (PodPhase::Running, false, 200, "Running/Eviction/Evicting"),
        (PodPhase::Running, false, 300, "Failed/Eviction/Timeout"),
        (PodPhase::Succeeded, false, 10, "Running/Eviction/EvictComplete"),
        (PodPhase::Succeeded, true, 10, "Running/Eviction/Evicting"),
        (PodPhase::Failed, false, 34, "Running/Eviction/Evicting"),
        (PodPhase::Failed, false, 35, "Failed/Eviction/FailedEvict"),
        (PodPhase::Failed, true, 200, "Running/Eviction/Evicting"),
    ] {
        assert_eq!(ends(phase, is_deleting, seconds), expected, "{phase:?} {is_deleting} {seconds}");
    }
}

#[test]
fn a_limiter_holds_a_job_up_until_it_lets_it_go() {
    let mut scene = Scene::new("EvictDirectly", &json!({}));
    for (limit_ms, again_ms) in [(100, 100), (60_000, 3_000)] {
        scene.seen.limited = Some(std::time::Duration::from_millis(limit_ms));
        let again = Some(SignedDuration::from_millis(again_ms));
        assert_eq!(scene.step(), Decision { again, ..Decision::default() });
    }
    let exempt = json!({"metadata": {"annotations": {"descheduler.alpha.kubernetes.io/evict": ""}}});
    let mut scene = Scene::new("EvictDirectly", &exempt);
    scene.seen.limited = Some(std::time::Duration::from_mins(1));
    assert!(scene.step().status.is_some());
}

#[test]
fn a_reservation_is_stored_in_the_job_before_it_is_created() {
    let whole = std::sync::Arc::new(koord_descheduler_testing::pod("a", "n1"));
    let mut scene = Scene::new("ReservationFirst", &json!({}));
    assert_eq!(scene.step().fetch.map(|fetch| fetch.uid), Some(Uid::from("a")));
    scene.seen.whole_pod = Lookup::Found(whole);
    let template = scene.step().template.unwrap();
    assert!(crate::reservation::is_complete(&template));
    scene = Scene::new("ReservationFirst", &json!({"spec": {"reservationOptions": {"template": template}}}));
    assert!(scene.step().creates_reservation);
    scene.seen.creation_error = Some("the API server answered 422: no".to_owned());
    assert_eq!(
        (scene.ends().as_str(), scene.step().creates_reservation),
        ("Running/ReservationCreated/FailedCreateReservation", true)
    );
    let scene = scene.reserved(&json!({}));
    let reference = scene.step().reservation_ref.unwrap();
    assert_eq!((reference.name.as_str(), scene.step().creates_reservation), ("j", false));
}

#[test]
fn labels_of_the_pod_then_the_job_then_the_settings_say_how_a_pod_is_evicted() {
    use EvictionPolicy::{Delete, Eviction, SoftEviction};
    for (of_pod, of_job, default, expected) in [
        (None, None, Delete, Delete),
        (None, Some("SoftEviction"), Delete, SoftEviction),
        (Some("Eviction"), Some("SoftEviction"), Delete, Eviction),
        (Some("Nonsense"), Some("SoftEviction"), Delete, Delete),
        (None, Some("Nonsense"), SoftEviction, SoftEviction),
        (None, Some(""), SoftEviction, SoftEviction),
    ] {
        let scene = Scene::new("EvictDirectly", &json!({"metadata": {"labels": {EVICT_POLICY: of_job}}}));
        let pod = JobPod { evict_policy: of_pod.map(Into::into), ..pod("a", "n1") };
        let request = EvictionRequest::of(&scene.job(), &ObjectKey::new("default", "a"), &pod, default);
        assert_eq!(request.policy, expected, "{of_pod:?} {of_job:?}");
    }
}

#[test]
fn each_policy_sends_the_options_of_the_job_for_this_pod_alone() {
    let annotations = json!({crate::jobs::EVICT_REASON: "maintenance", crate::jobs::EVICT_TRIGGER: "someone"});
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"deleteOptions": {"gracePeriodSeconds": 5}}});
    let scene = Scene::new("EvictDirectly", &patch);
    let request = |policy| {
        let request = EvictionRequest::of(&scene.job(), &ObjectKey::new("default", "a"), &pod("a", "n1"), policy);
        let request = request.request("me", at(0));
        (format!("{} {}", request.method, request.uri), serde_json::from_str::<Value>(&request.body).unwrap())
    };
    let options = json!({"gracePeriodSeconds": 5, "preconditions": {"uid": "a"}});
    let (line, body) = request(EvictionPolicy::Eviction);
    assert_eq!((line.as_str(), &body["deleteOptions"]), ("POST /api/v1/namespaces/default/pods/a/eviction", &options));
    assert_eq!(request(EvictionPolicy::Delete), ("DELETE /api/v1/namespaces/default/pods/a".to_owned(), options));
    let (line, body) = request(EvictionPolicy::SoftEviction);
    assert_eq!(
        (line.as_str(), &body["metadata"]["uid"]),
        ("PATCH /api/v1/namespaces/default/pods/a?fieldManager=me", &json!("a"))
    );
    let text = r#"{"timestamp":"2026-01-01T00:00:00Z","deleteOptions":{"gracePeriodSeconds":5},"initiator":"someone","reason":"maintenance"}"#;
    assert_eq!(body["metadata"]["annotations"][SOFT_EVICTION], text);
}

#[test]
fn the_reason_of_an_eviction_is_the_annotation_or_the_trigger() {
    for (why, trigger, expected) in [
        (Some("maintenance"), Some("someone"), "maintenance"),
        (None, Some("someone"), "someone"),
        (Some(""), Some("someone"), "someone"),
        (Some(""), None, "NotSet"),
        (None, None, "NotSet"),
    ] {
        let annotations = json!({crate::jobs::EVICT_REASON: why, crate::jobs::EVICT_TRIGGER: trigger});
        let scene = Scene::new("EvictDirectly", &json!({"metadata": {"annotations": annotations}}));
        assert_eq!(eviction::reason(&scene.job()), expected);
    }
}

#[test]
fn a_refusal_names_the_budget() {
    let answer = |code, body: &Value| refusal(&Answer { code, retry_after: None, body: body.to_string() });
    let causes = json!([{"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}]);
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(
        answer(429, &json!({"message": message, "details": {"causes": causes}})),
        "blocked by PodDisruptionBudget web, which needs 2 healthy pods and has 2 currently"
    );
    assert_eq!(answer(429, &json!({"message": message})), format!("blocked: {message}"));
    assert_eq!(answer(403, &json!({"message": "no"})), "the API server answered 403: no");
}

/// QUIRK: a pod that used the Reservation and is gone again counts as ready.
#[test]
fn the_pod_that_uses_the_reservation_is_ready_or_gone_before_the_job_succeeds() {
    let evicted = condition("Eviction", "True", "EvictComplete");
    let mut patch = with_reservation(&[condition("ReservationScheduled", "True", ""), evicted]);
    patch["status"]["nodeName"] = json!("n2");
    let waiting = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Available", &[]));
    assert_eq!(waiting.ends(), "Running/PodBoundReservation/WaitForPodBindReservation");
    let mut scene = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Succeeded", &["b"]));
    for (new_pod, expected) in [
        (Lookup::Unknown, "Running/ReservationCreated/-"),
        (Lookup::Found(JobPod { is_ready: false, ..pod("b", "n2") }), "Running/BoundPodReady/WaitForBoundPodReady"),
        (Lookup::Found(pod("b", "n2")), "Running/BoundPodReady/-"),
        (Lookup::Found(JobPod { is_ready: false, ..pod("other", "n2") }), "Running/BoundPodReady/-"),
        (Lookup::Absent, "Running/BoundPodReady/-"),
    ] {
        scene.seen.new_pod = new_pod;
        assert_eq!(scene.ends(), expected);
        let status = scene.step().status.unwrap();
        assert_eq!(status.pod_ref.and_then(|pod| pod.name).as_deref(), Some("b"), "it is named at once");
    }
    // From then on the Reservation is not needed.
    patch["status"]["podRef"] = json!({"namespace": "default", "name": "b", "uid": "b"});
    let mut bound = Scene::new("ReservationFirst", &patch);
    (bound.seen.reservation, bound.seen.new_pod) = (Lookup::Absent, Lookup::Found(pod("b", "n2")));
    assert_eq!(bound.ends(), "Running/BoundPodReady/-");
}

#[test]
fn a_pod_that_waits_for_a_node_gets_one_and_is_not_evicted() {
    let mut patch = with_reservation(&[condition("ReservationScheduled", "True", "")]);
    patch["status"]["nodeName"] = json!("n2");
    let mut scene = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Available", &[]));
    if let Lookup::Found(reservation) = &mut scene.seen.reservation {
        reservation.is_for_pod = true;
    }
    assert!(scene.step().fetch.is_some(), "why it waits is in the whole pod");
    scene.seen.whole_pod = Lookup::Absent;
    assert_eq!(scene.ends(), "Running/PodScheduled/Unschedulable");
    scene.seen.pod = Lookup::Found(JobPod { is_scheduled: true, ..pod("a", "n2") });
    assert_eq!(scene.ends(), "Succeeded/Complete/-");
    scene.seen.pod = Lookup::Absent;
    assert_eq!(scene.ends(), "Failed/ReservationCreated/MissingPod");
    let mut taken = Scene::new("ReservationFirst", &patch).reserved(&scheduled("Succeeded", &["other"]));
    if let Lookup::Found(reservation) = &mut taken.seen.reservation {
        reservation.is_for_pod = true;
    }
    assert_eq!(taken.ends(), "Failed/ReservationCreated/ForbiddenMigratePod");
}
