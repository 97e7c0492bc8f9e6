use koord_descheduler_framework::pod::EVICT;
use koord_descheduler_testing::with;
use serde_json::{Value, json};

use super::*;
use crate::{
    plugin::fixtures::{cluster_of, controller, job, owned, ready, replica_set, replica_set_of, running, workload},
    workloads::Scale,
};

/// Decisions in their order: the name of the job with `pass`, `fail` or `stay`.
fn decided(arguments: &Value, cluster: &Cluster, passed: &[&str]) -> Vec<String> {
    let passed = passed.iter().map(|uid| Uid::from(*uid)).collect();
    let controller = controller(arguments);
    let decided = controller.arbitrate(cluster, &passed);
    let text = |arbitrated: &Arbitrated<'_>| {
        let decision = match arbitrated.decision {
            Decision::Pass => "pass",
            Decision::Fail(_) => "fail",
            Decision::Stay(_) => "stay",
        };
        format!("{} {decision}", arbitrated.job.name)
    };
    decided.iter().map(text).collect()
}

/// The same with wide limits for workloads, and these of the arguments.
fn decisions(arguments: &Value, objects: &[Value]) -> Vec<String> {
    let wide = json!({"maxMigratingPerNode": 0, "maxMigratingPerWorkload": 20, "maxUnavailablePerWorkload": 20});
    let objects: Vec<Value> = objects.iter().cloned().chain([replica_set("rs", 30)]).collect();
    decided(&with(&wide, arguments), &cluster_of(&objects), &[])
}

fn of_class(name: &str, priority: i32) -> Value {
    with(&ready(name, "n1"), &json!({"spec": {"priority": priority}}))
}

fn created(job: &Value, second: u32) -> Value {
    with(job, &json!({"metadata": {"creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")}}))
}

fn paused(job: &Value) -> Value {
    with(job, &json!({"spec": {"paused": true}}))
}

/// Pods of four classes on one node, each with a job.
fn four_classes() -> Vec<Value> {
    let classes = [("prod", 9500), ("free", 3500), ("mid", 7500), ("batch", 5500)];
    classes.iter().flat_map(|(name, priority)| [of_class(name, *priority), job(&format!("j-{name}"), name)]).collect()
}

// --- order ---

#[test]
fn jobs_of_the_least_important_pods_go_first() {
    let all = ["j-free pass", "j-batch pass", "j-mid pass", "j-prod pass"];
    assert_eq!(decisions(&json!({}), &four_classes()), all);
    let two = ["j-free pass", "j-batch pass", "j-mid stay", "j-prod stay"];
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 2}), &four_classes()), two);
    let three = ["j-free pass", "j-batch pass", "j-mid pass", "j-prod stay"];
    assert_eq!(decisions(&json!({"maxMigratingGlobally": 3}), &four_classes()), three);
    assert_eq!(decisions(&json!({"maxMigratingPerNamespace": 3}), &four_classes()), three);
    assert_eq!(decisions(&json!({"maxMigratingPerWorkload": "9%"}), &four_classes()), two);
    let one = ["j-free pass", "j-batch stay", "j-mid stay", "j-prod stay"];
    assert_eq!(decisions(&json!({"maxUnavailablePerWorkload": 1}), &four_classes()), one);
    let skipping = json!({"maxMigratingGlobally": 1, "skipEvictionGates": ["MaxMigratingGlobally"]});
    assert_eq!(decisions(&skipping, &four_classes()), all);
}

#[test]
fn without_a_number_one_of_three_replicas_migrates() {
    let pods = [of_class("prod", 9500), of_class("free", 3500), of_class("mid", 7500)];
    let jobs = [job("j-prod", "prod"), job("j-free", "free"), job("j-mid", "mid")];
    let objects: Vec<Value> = pods.into_iter().chain(jobs).chain([replica_set("rs", 3)]).collect();
    let decided = decided(&json!({}), &cluster_of(&objects), &[]);
    assert_eq!(decided, ["j-free pass", "j-mid stay", "j-prod stay"]);
}

#[test]
fn of_equal_pods_the_newest_job_goes_first() {
    let pods = ["p1", "p2", "p3"].map(|name| ready(name, "n1"));
    let jobs = [created(&job("j1", "p1"), 1), created(&job("j2", "p2"), 2), created(&job("j3", "p3"), 3)];
    let objects: Vec<Value> = pods.into_iter().chain(jobs).collect();
    let decided = decisions(&json!({"maxMigratingPerNode": 1}), &objects);
    assert_eq!(decided, ["j3 pass", "j2 stay", "j1 stay"]);
}

#[test]
fn the_newest_pod_goes_first_whichever_job_is_newer() {
    let pod = |name: &str, second: u32| {
        with(&ready(name, "n1"), &json!({"metadata": {"creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")}}))
    };
    let objects = [pod("old", 1), pod("new", 2), created(&job("j-old", "old"), 9), created(&job("j-new", "new"), 8)];
    assert_eq!(decisions(&json!({}), &objects), ["j-new pass", "j-old pass"]);
}

#[test]
fn jobs_of_one_batch_job_are_taken_together() {
    let of =
        |name: &str, batch_job: &str, priority| with(&of_class(name, priority), &owned("batch/v1", "Job", batch_job));
    let pods = [of("x1", "b1", 3500), of("y1", "b2", 5500), of("x2", "b1", 9500), of("y2", "b2", 5501)];
    let jobs = [job("j-x1", "x1"), job("j-y1", "y1"), job("j-x2", "x2"), job("j-y2", "y2")];
    let gates =
        json!({"skipEvictionGates": ["ExpectedReplicas", "MaxUnavailablePerWorkload", "MaxMigratingPerWorkload"]});
    let objects: Vec<Value> = pods.iter().chain(&jobs).cloned().collect();
    assert_eq!(decisions(&gates, &objects), ["j-x1 pass", "j-x2 pass", "j-y1 pass", "j-y2 pass"]);
    // A batch Job of which a pod migrates already goes first.
    let running: Vec<Value> = pods.iter().cloned().chain([jobs[0].clone(), running("j-y2", "y2")]).collect();
    let running: Vec<Value> = running
        .into_iter()
        .map(|object| if object["metadata"]["name"] == "j-y2" { annotated(&object) } else { object })
        .chain([jobs[1].clone()])
        .collect();
    assert_eq!(decisions(&gates, &running), ["j-y1 pass", "j-x1 pass"]);
    let limited = with(&gates, &json!({"maxMigratingPerNode": 2}));
    assert_eq!(decisions(&limited, &running), ["j-y1 pass", "j-x1 stay"]);
}

/// The job with the annotation of jobs that have passed.
fn annotated(job: &Value) -> Value {
    with(job, &json!({"metadata": {"annotations": {crate::jobs::PASSED_ARBITRATION: "true"}}}))
}

// --- decisions ---

#[test]
fn a_job_of_a_pod_that_may_not_migrate_fails_though_limits_would_hold_it_up() {
    let bare = with(&ready("p", "n1"), &json!({"metadata": {"ownerReferences": null}}));
    let objects = [bare, ready("o", "n1"), job("j", "p"), annotated(&running("k", "o"))];
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 1}), &objects), ["j fail"]);
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 1, "evictAllBarePods": true}), &objects), ["j stay"]);
    let annotation = json!({"metadata": {"annotations": {EVICT: ""}}});
    let objects = [with(&objects[0], &annotation), objects[1].clone(), objects[2].clone(), objects[3].clone()];
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 1}), &objects), ["j pass"]);
}

#[test]
fn the_filters_of_strategies_for_jobs_and_schedulers_do_not_concern_jobs_made_by_hand() {
    let elsewhere = with(&ready("p", "n1"), &json!({"spec": {"schedulerName": "default-scheduler"}}));
    assert_eq!(decisions(&json!({}), &[elsewhere, job("j", "p"), job("k", "p")]), ["j pass", "k pass"]);
}

#[test]
fn a_job_never_counts_against_itself() {
    let limits = json!({"maxMigratingPerNode": 1, "maxMigratingPerNamespace": 1, "maxMigratingGlobally": 1, "maxMigratingPerWorkload": 1});
    assert_eq!(decisions(&limits, &[ready("p", "n1"), job("j", "p")]), ["j pass"]);
    // A job that runs without having passed passes late.
    assert_eq!(decisions(&limits, &[ready("p", "n1"), running("j", "p")]), ["j pass"]);
}

#[test]
fn of_ten_jobs_of_a_node_two_run_at_a_time_and_all_of_them_finish() {
    let mut objects: Vec<Value> = (0..10).map(|index| ready(&format!("p{index}"), "n1")).collect();
    objects.push(replica_set("rs", 300));
    objects.extend((0..10).map(|index| job(&format!("j{index}"), &format!("p{index}"))));
    let mut rounds = 0;
    loop {
        let decided = decided(&json!({}), &cluster_of(&objects), &[]);
        let passing: Vec<&str> = decided.iter().filter_map(|text| text.strip_suffix(" pass")).collect();
        if decided.is_empty() {
            break;
        }
        assert_eq!(passing.len(), 2, "{decided:?}");
        rounds += 1;
        // Those that pass run, and nothing else passes as long as they do.
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for object in objects.iter_mut().filter(|object| passing.contains(&&*name(object))) {
            *object = annotated(&with(object, &json!({"status": {"phase": "Running"}})));
        }
        let again = self::decided(&json!({}), &cluster_of(&objects), &[]);
        assert!(again.iter().all(|text| text.ends_with(" stay")), "{again:?}");
        for object in objects.iter_mut().filter(|object| passing.contains(&&*name(object))) {
            *object = with(object, &json!({"status": {"phase": "Succeeded"}}));
        }
    }
    assert_eq!(rounds, 5);
}

#[test]
fn a_job_that_passed_counts_before_the_snapshot_shows_it() {
    let objects = [ready("p", "n1"), ready("o", "n1"), replica_set("rs", 30), job("j", "p"), job("k", "o")];
    let cluster = cluster_of(&objects);
    let arguments = json!({"maxMigratingPerNode": 1});
    assert_eq!(decided(&arguments, &cluster, &[]), ["j pass", "k stay"]);
    assert_eq!(decided(&arguments, &cluster, &["j"]), ["k stay"]);
    assert_eq!(decided(&arguments, &cluster, &["k"]), ["j stay"]);
}

#[test]
fn a_change_of_a_waiting_job_does_not_let_it_start() {
    let changed = with(&job("j", "p"), &json!({"metadata": {"labels": {"a": "b"}, "annotations": {"x": "y"}}}));
    let objects = [ready("p", "n1"), ready("o", "n1"), annotated(&running("k", "o")), changed];
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 1}), &objects), ["j stay"]);
    assert_eq!(decisions(&json!({"maxMigratingPerNode": 2}), &objects), ["j pass"]);
}

#[test]
fn a_paused_job_waits_and_takes_no_room() {
    let pods = [of_class("prod", 9500), of_class("free", 3500)];
    let limit = json!({"maxMigratingPerNode": 1});
    let with_jobs = |jobs: &[Value]| decisions(&limit, &pods.iter().chain(jobs).cloned().collect::<Vec<_>>());
    let decided = with_jobs(&[job("j-prod", "prod"), paused(&job("j-free", "free"))]);
    assert_eq!(decided, ["j-free stay", "j-prod pass"]);
    // When it goes on, it waits for its turn.
    let decided = with_jobs(&[annotated(&running("j-prod", "prod")), job("j-free", "free")]);
    assert_eq!(decided, ["j-free stay"]);
}

#[test]
fn a_job_that_was_deleted_or_has_ended_waits_for_nothing() {
    let deleted = with(&job("j", "p"), &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let none: [&str; 0] = [];
    assert_eq!(decisions(&json!({}), &[ready("p", "n1"), deleted]), none);
    let bare = with(&ready("p", "n1"), &json!({"metadata": {"ownerReferences": null}}));
    for phase in ["Succeeded", "Failed", "Aborted"] {
        let ended = with(&job("j", "p"), &json!({"status": {"phase": phase}}));
        assert_eq!(decisions(&json!({}), &[bare.clone(), ended]), none, "{phase}");
    }
}

#[test]
fn a_job_without_pod_passes_so_that_it_fails_and_takes_no_room() {
    let nameless = with(&job("i", "x"), &json!({"spec": {"podRef": {"name": null}}}));
    let objects = [ready("p", "n1"), job("j", "p"), job("h", "gone"), nameless];
    let decided = decisions(&json!({"maxMigratingGlobally": 1}), &objects);
    assert_eq!(decided, ["h pass", "i pass", "j pass"]);
}

#[test]
fn a_pod_that_is_not_ready_counts_itself() {
    let down = with(&ready("p", "n1"), &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}));
    let objects = [down, job("j", "p")];
    assert_eq!(decisions(&json!({"maxUnavailablePerWorkload": 1}), &objects), ["j stay"]);
    assert_eq!(decisions(&json!({"maxUnavailablePerWorkload": 2}), &objects), ["j pass"]);
}

#[test]
fn owners_of_all_kinds_with_and_without_the_check_of_replicas() {
    let of = |name: &str, api_version: &str, kind: &str, owner: &str| {
        with(&ready(name, "n1"), &owned(api_version, kind, owner))
    };
    let mut other = of("uid", "apps/v1", "ReplicaSet", "other");
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    let mut not_controller = of("notcontroller", "apps/v1", "ReplicaSet", "missing");
    not_controller["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    let pods = [
        of("dep1", "apps/v1", "ReplicaSet", "rs1"),
        of("dep2", "apps/v1", "ReplicaSet", "rs2"),
        of("sts", "apps/v1", "StatefulSet", "sts"),
        of("rc", "v1", "ReplicationController", "rc"),
        of("job", "batch/v1", "Job", "job"),
        of("gone", "apps/v1", "ReplicaSet", "missing"),
        of("crd", "example.org/v1", "Widget", "w"),
        other,
        not_controller,
    ];
    let workloads = [
        workload("apps/v1", "Deployment", "dep", 10),
        replica_set_of("dep", "rs1", 5),
        replica_set_of("dep", "rs2", 1),
        workload("apps/v1", "StatefulSet", "sts", 5),
        workload("v1", "ReplicationController", "rc", 5),
        replica_set("other", 5),
    ];
    let jobs = pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default()).map(|name| job(name, name));
    let objects: Vec<Value> = pods.iter().chain(&workloads).cloned().chain(jobs).collect();
    let mut cluster = cluster_of(&objects);
    let decided = |arguments: &Value, cluster: &Cluster| {
        let mut decided = decided(arguments, cluster, &[]);
        decided.sort();
        decided
    };
    let strict = json!({"maxMigratingPerNode": 0});
    let before = decided(&strict, &cluster);
    assert_eq!(before.first().map(String::as_str), Some("crd stay"), "until its scale was looked up");
    cluster.set_object(Scale::Failed.object(&Uid::from("w")));
    let passing = ["dep1 pass", "dep2 pass"];
    let forbidden = ["gone fail", "job fail", "notcontroller pass", "rc pass", "sts pass", "uid fail"];
    assert_eq!(decided(&strict, &cluster), [&["crd fail"][..], &passing, &forbidden].concat());
    let waiting = ["gone stay", "job stay", "notcontroller pass", "rc pass", "sts pass", "uid stay"];
    let lax = with(&strict, &json!({"skipCheckExpectedReplicas": true}));
    assert_eq!(decided(&lax, &cluster), [&["crd fail"][..], &passing, &waiting].concat());
}

#[test]
fn a_decision_says_why() {
    let objects =
        [ready("p", "n1"), ready("o", "n1"), replica_set("rs", 30), annotated(&running("k", "o")), job("j", "p")];
    let cluster = cluster_of(&objects);
    let controller = controller(&json!({"maxMigratingPerNode": 1}));
    let decided = controller.arbitrate(&cluster, &BTreeSet::new());
    let [waiting] = &decided[..] else { panic!("{decided:?}") };
    let expected = Refusal::new(ReasonCode::MigratingPerNode).with("migrating", 1_i64).with("limit", 1_i64);
    assert_eq!(waiting.decision, Decision::Stay(expected));
    assert_eq!(
        forbidden_message(waiting.job),
        "Pod \"default/p\" is forbidden to migrate because it does not meet the requirements"
    );
}
