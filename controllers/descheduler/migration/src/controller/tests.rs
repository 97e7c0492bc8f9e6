//! The controller in cases of our own.

use jiff::SignedDuration;
use koord_config::{arguments, descheduler::MigrationControllerArgs};
use serde_json::{Value, json};

use super::stage::{Stage, World};

fn args(args: &Value) -> MigrationControllerArgs {
    arguments(args).unwrap()
}

fn pod(name: &str, node: &str, patch: &Value) -> Value {
    let pod = koord_descheduler_testing::pod(name, node);
    let ready = json!({"spec": {"terminationGracePeriodSeconds": 0}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    koord_descheduler_testing::with(&koord_descheduler_testing::with(&pod, &ready), patch)
}

fn job(mode: &str, spec: &Value) -> Value {
    let reference = json!({"namespace": "default", "name": "a"});
    let job = json!({"kind": "PodMigrationJob", "metadata": {"name": "j"}, "spec": {"mode": mode, "podRef": reference, "ttl": "5m"}});
    koord_descheduler_testing::with(&job, &json!({ "spec": spec }))
}

fn named(kind: &str, name: &str) -> (String, String, String) {
    let namespace = if kind == "Pod" { "default" } else { "" };
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

fn status(stage: &Stage) -> Value {
    stage.world.lock().objects[&named("PodMigrationJob", "j")]["status"].clone()
}

fn reservation(world: &World) -> Option<(String, String, String)> {
    world.objects.keys().find(|(kind, _, _)| kind == "Reservation").cloned()
}

/// The scheduler gives the Reservation a node, and to pods that use it.
fn place(stage: &Stage, users: &[&str]) {
    let owners: Vec<Value> = users
        .iter()
        .map(|user| json!({"namespace": "default", "name": user, "uid": format!("$uid(Pod/default/{user})")}))
        .collect();
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason});
    let phase = if users.is_empty() { "Available" } else { "Succeeded" };
    let conditions = [condition("Scheduled", "Scheduled"), condition("Ready", "Available")];
    let status = json!({"phase": phase, "nodeName": "n2", "conditions": conditions, "currentOwners": owners});
    let mut world = stage.world.lock();
    if let Some(name) = reservation(&world) {
        world.patch(&name, &json!({ "status": status }));
    }
}

/// D24 koordinator#1022.
#[test]
fn the_status_names_the_new_pod_at_once_and_succeeds_when_it_is_ready() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("ReservationFirst", &json!({})));
    stage.start();
    stage.settle();
    place(&stage, &[]);
    stage.settle();
    assert_eq!(status(&stage)["reason"], "WaitForPodBindReservation");
    stage.create(pod("b", "n2", &json!({"status": {"conditions": []}})));
    place(&stage, &["b"]);
    stage.settle();
    let at_once = status(&stage);
    assert_eq!((&at_once["podRef"]["name"], &at_once["phase"]), (&json!("b"), &json!("Running")));
    assert_eq!(at_once["reason"], "WaitForBoundPodReady");
    stage.pass(SignedDuration::from_secs(60));
    assert_eq!(status(&stage)["phase"], "Running");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    stage.world.lock().patch(&named("Pod", "b"), &ready);
    stage.settle();
    assert_eq!(status(&stage)["phase"], "Succeeded");
}

/// D62 descheduler#996.
#[test]
fn a_budget_that_forbids_the_eviction_is_named_until_it_allows_it() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({"metadata": {"labels": {"app": "x"}}})));
    let selector = json!({"matchLabels": {"app": "x"}});
    stage.create(json!({
        "kind": "PodDisruptionBudget", "metadata": {"namespace": "default", "name": "b"},
        "spec": {"selector": selector}, "status": {"disruptionsAllowed": 0},
    }));
    stage.create(job("EvictDirectly", &json!({})));
    stage.start();
    stage.pass(SignedDuration::from_secs(100));
    let blocked = status(&stage);
    let text = "blocked by PodDisruptionBudget b, which needs 1 healthy pods and has 1 currently";
    assert_eq!((&blocked["phase"], &blocked["message"]), (&json!("Running"), &json!(text)));
    let condition = &blocked["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"], &condition["reason"]),
        (&json!("Eviction"), &json!("False"), &json!("FailedEvict"))
    );
    // Said once, however often it is tried.
    assert_eq!(stage.events().iter().filter(|event| event.ends_with("FailedEvict")).count(), 1);
    let budget = ("PodDisruptionBudget".to_owned(), "default".to_owned(), "b".to_owned());
    stage.world.lock().patch(&budget, &json!({"status": {"disruptionsAllowed": 1}}));
    stage.pass(SignedDuration::from_secs(31));
    assert_eq!(status(&stage)["phase"], "Succeeded");
    let events = ["Evicting", "Descheduled", "EvictComplete", "Complete"];
    let about = |reason: &str| if reason == "Descheduled" { "Pod default/a" } else { "PodMigrationJob j" };
    for event in events.map(|reason| format!("{} {reason}", about(reason))) {
        assert_eq!(stage.events().iter().filter(|seen| **seen == event).count(), 1, "{event}");
    }
}

#[test]
fn a_job_gives_up_when_its_time_is_over_although_nothing_changes() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("ReservationFirst", &json!({"ttl": "40s"})));
    stage.start();
    stage.pass(SignedDuration::from_millis(39_900));
    assert_eq!(status(&stage)["phase"], "Running");
    stage.pass(SignedDuration::from_millis(200));
    assert_eq!((&status(&stage)["reason"], reservation(&stage.world.lock())), (&json!("Timeout"), None));
    // And it is deleted five minutes later.
    stage.pass(SignedDuration::from_secs(299));
    assert!(stage.world.lock().objects.contains_key(&named("PodMigrationJob", "j")));
    stage.pass(SignedDuration::from_secs(2));
    assert!(!stage.world.lock().objects.contains_key(&named("PodMigrationJob", "j")));
}

#[test]
fn a_job_that_has_not_passed_arbitration_does_not_start() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.arbitrates = false;
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("EvictDirectly", &json!({})));
    stage.start();
    stage.pass(SignedDuration::from_secs(2));
    stage.world.lock().patch(&named("PodMigrationJob", "j"), &json!({"metadata": {"labels": {"touched": "1"}}}));
    stage.pass(SignedDuration::from_secs(2));
    assert!(status(&stage).is_null());
    stage.arbitrates = true;
    stage.pass(SignedDuration::from_secs(1));
    assert_eq!(status(&stage)["phase"], "Succeeded");
}

#[test]
fn limiters_hold_a_job_up_and_learn_of_its_eviction_once() {
    let mut stage = Stage::new(args(&json!({})), false);
    *stage.limits.hold_up.lock() = Some(std::time::Duration::from_mins(1));
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("EvictDirectly", &json!({})));
    stage.start();
    stage.pass(SignedDuration::from_secs(10));
    assert_eq!((&status(&stage)["phase"], stage.world.lock().evictions.len()), (&json!("Running"), 0));
    *stage.limits.hold_up.lock() = None;
    stage.pass(SignedDuration::from_secs(3));
    assert_eq!(status(&stage)["phase"], "Succeeded");
    assert_eq!(*stage.limits.evicted.lock(), ["default/a n1 $uid(PodMigrationJob j)"]);
}

#[test]
fn a_pod_that_has_come_back_under_its_name_is_not_evicted() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("ReservationFirst", &json!({})));
    stage.start();
    stage.settle();
    stage.world.lock().delete(&named("Pod", "a"), &json!({"gracePeriodSeconds": 0}), "step");
    stage.create(pod("a", "n1", &json!({})));
    place(&stage, &[]);
    stage.settle();
    assert_eq!((&status(&stage)["reason"], reservation(&stage.world.lock())), (&json!("MissingPod"), None));
    assert!(stage.world.lock().evictions.is_empty());
}

fn own() -> Value {
    json!({
        "kind": "Reservation", "metadata": {"name": "mine"},
        "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "mine"}}}], "template": {}},
    })
}

#[test]
fn a_reservation_of_a_user_outlives_the_job() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(own());
    stage.create(job("ReservationFirst", &json!({"reservationOptions": {"reservationRef": {"name": "mine"}}})));
    stage.start();
    stage.pass(SignedDuration::from_secs(1));
    stage.world.lock().delete(&named("PodMigrationJob", "j"), &json!({}), "step");
    stage.pass(SignedDuration::from_secs(1));
    assert!(stage.world.lock().objects.contains_key(&named("Reservation", "mine")));
}

#[test]
fn a_missing_reservation_ends_the_job() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("ReservationFirst", &json!({"reservationOptions": {"reservationRef": {"name": "mine"}}})));
    stage.start();
    stage.pass(SignedDuration::from_secs(1));
    assert_eq!(status(&stage)["reason"], "MissingReservation");
    assert!(stage.world.lock().evictions.is_empty());
}

/// A job that another process left is deleted with its Reservation, also where nobody saw that.
#[test]
fn a_reservation_whose_job_is_gone_goes() {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job("ReservationFirst", &json!({})));
    stage.start();
    stage.settle();
    assert!(reservation(&stage.world.lock()).is_some());
    stage.stop();
    stage.world.lock().delete(&named("PodMigrationJob", "j"), &json!({}), "step");
    stage.start();
    stage.settle();
    assert_eq!(reservation(&stage.world.lock()), None);
}

/// The way of a job, with everybody doing their part; the process ends after so many acts of it, in the midst of a plan where there is more to write.
fn way(mode: &str, acts: usize, writes_max: usize) -> (Value, Vec<String>, bool) {
    let mut stage = Stage::new(args(&json!({})), false);
    stage.create(pod("a", "n1", &json!({})));
    stage.create(job(mode, &json!({})));
    stage.start();
    stage.arbitrate();
    let (mut done, mut is_over, mut has_new_pod) = (0, false, false);
    for _ in 0..400 {
        let is_last = done == acts;
        if !stage.act(if is_last { writes_max } else { usize::MAX }) {
            // Nothing to do: the others.
            let is_gone = !stage.world.lock().objects.contains_key(&named("Pod", "a"));
            if is_gone && !has_new_pod {
                has_new_pod = true;
                stage.create(pod("b", "n2", &json!({})));
            }
            place(&stage, if has_new_pod { &["b"] } else { &[] });
            if !stage.act(usize::MAX) {
                break;
            }
        }
        if is_last {
            stage.start();
            is_over = true;
        }
        done += 1;
    }
    let times = stage.world.lock().evictions.clone();
    let evicted = times.iter().map(|(uid, times)| format!("{uid} {times}")).collect();
    (status(&stage), evicted, is_over)
}

#[test]
fn a_process_that_starts_anywhere_in_the_course_brings_it_to_the_same_end() {
    for mode in ["ReservationFirst", "EvictDirectly"] {
        let mut acts = 0;
        loop {
            let mut is_over = false;
            for writes_max in [0, 1, usize::MAX] {
                let (status, evicted, was_over) = way(mode, acts, writes_max);
                assert_eq!(status["phase"], "Succeeded", "{mode} {acts} {writes_max}: {status}");
                assert_eq!(evicted, ["$uid(Pod/default/a) 1"], "{mode} {acts} {writes_max}");
                is_over = was_over;
            }
            if !is_over {
                break;
            }
            acts += 1;
        }
        assert!(acts > 6, "{mode} {acts}");
    }
}
