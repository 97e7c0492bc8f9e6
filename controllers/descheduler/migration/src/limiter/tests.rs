use koord_descheduler_framework::Cluster;
use koord_descheduler_testing::with;
use serde_json::{Value, json};

use super::*;
use crate::plugin::MigrationController;
use crate::{
    jobs::MigrationJob,
    plugin::fixtures::{at, cluster_of, controller, owned, ready, replica_set, replica_set_of, workload},
};

/// Evictions of pods of the namespace `default` at a time in milliseconds, one after the other.
struct Evictions {
    controller: MigrationController,
    cluster: Cluster,
    limiters: ObjectLimiters,
}

impl Evictions {
    fn new(limiters: &Value, objects: &[Value]) -> Self {
        let arguments = json!({"objectLimiters": limiters});
        Self { controller: controller(&arguments), cluster: cluster_of(objects), limiters: ObjectLimiters::default() }
    }

    fn pod(&self, name: &str) -> Arc<Pod> {
        Arc::clone(self.cluster.pod(self.cluster.pod_id(&format!("default/{name}")).unwrap()).unwrap())
    }

    fn evict(&mut self, name: &str, job: Option<&str>, now_ms: i64) {
        let (pod, job) = (self.pod(name), job.map(Uid::from));
        self.controller.count_eviction(&mut self.limiters, &self.cluster, &pod, job.as_ref(), at(now_ms));
    }

    fn held_up(&self, name: &str, job: Option<&str>, now_ms: i64) -> Option<HeldUp> {
        let (pod, job) = (self.pod(name), job.map(Uid::from));
        self.controller.hold_up(&self.limiters, &self.cluster, &pod, job.as_ref(), at(now_ms))
    }

    fn is_held_up(&self, name: &str, now_ms: i64) -> bool {
        self.held_up(name, None, now_ms).is_some()
    }
}

fn pods(replicas: i32) -> Vec<Value> {
    vec![replica_set("rs", replicas), ready("a", "n1"), ready("b", "n1")]
}

#[test]
fn a_workload_or_namespace_waits_for_the_next_token() {
    for (limiters, blocked_at, free_at) in [
        (json!({"workload": {"duration": "1s", "maxMigrating": 10}}), 10, 100),
        (json!({"namespace": {"duration": "1s", "maxMigrating": 5}}), 100, 200),
        (json!({"workload": {"duration": "4s", "maxMigrating": 1}}), 3999, 4000),
        (json!({"workload": {"duration": "1m", "maxMigrating": "30%"}}), 19_999, 20_000),
    ] {
        let mut evictions = Evictions::new(&limiters, &pods(10));
        assert!(!evictions.is_held_up("b", 0));
        evictions.evict("a", None, 0);
        assert!(evictions.is_held_up("b", blocked_at), "{limiters}");
        assert!(!evictions.is_held_up("b", free_at), "{limiters}");
    }
}

#[test]
fn by_default_a_workload_of_ten_loses_a_pod_in_two_and_a_half_minutes() {
    let mut evictions = Evictions::new(&json!({}), &pods(10));
    evictions.evict("a", None, 0);
    assert!(evictions.is_held_up("b", 149_999) && !evictions.is_held_up("b", 150_000));
    let held_up = evictions.held_up("b", None, 50_000).unwrap();
    assert_eq!(held_up, HeldUp { by: "workload", for_: StdDuration::from_secs(100) });
    assert_eq!(Refusal::from(held_up).reason().operand("limiter"), Some("workload"));
}

#[test]
fn a_burst_lets_several_go_at_once() {
    let burst = json!({"workload": {"duration": "10m", "maxMigrating": 1, "burst": 2}});
    let mut evictions = Evictions::new(&burst, &pods(30));
    evictions.evict("a", None, 0);
    assert!(!evictions.is_held_up("b", 1));
    evictions.evict("a", None, 1);
    assert!(evictions.is_held_up("b", 2) && !evictions.is_held_up("b", 600_000));
}

#[test]
fn a_limiter_that_is_off_does_not_switch_the_other_off() {
    let on = json!({"duration": "10m", "maxMigrating": 1});
    let no_limits = [json!({"duration": "0s"}), json!({"maxMigrating": 1})];
    for off in no_limits.iter().chain(&[json!({"duration": "10m", "maxMigrating": 0})]) {
        let mut evictions = Evictions::new(&json!({"workload": on, "namespace": off}), &pods(30));
        evictions.evict("a", None, 0);
        assert_eq!(evictions.held_up("b", None, 1).map(|held_up| held_up.by), Some("workload"), "{off}");
    }
    for off in no_limits {
        let mut evictions = Evictions::new(&json!({"namespace": on, "workload": off}), &pods(30));
        evictions.evict("a", None, 0);
        assert_eq!(evictions.held_up("b", None, 1).map(|held_up| held_up.by), Some("namespace"), "{off}");
    }
    // QUIRK: 0 of a workload counts as 1; a part of a namespace is no number of pods.
    let mut evictions = Evictions::new(&json!({"workload": {"duration": "10m", "maxMigrating": 0}}), &pods(30));
    evictions.evict("a", None, 0);
    assert!(evictions.is_held_up("b", 1));
    let mut evictions = Evictions::new(&json!({"namespace": {"duration": "10m", "maxMigrating": "10%"}}), &pods(30));
    evictions.evict("a", None, 0);
    assert!(!evictions.is_held_up("b", 1));
}

#[test]
fn a_workload_limiter_without_maximum_goes_by_the_argument_of_the_plugin() {
    let arguments = json!({"maxMigratingPerWorkload": 5, "objectLimiters": {"workload": {"duration": "10s"}}});
    let mut evictions = Evictions::new(&json!({}), &pods(10));
    evictions.controller = controller(&arguments);
    evictions.evict("a", None, 0);
    assert!(evictions.is_held_up("b", 1999) && !evictions.is_held_up("b", 2000));
}

#[test]
fn a_job_is_not_held_up_by_its_own_eviction() {
    let mut evictions = Evictions::new(&json!({"workload": {"duration": "10m", "maxMigrating": 1}}), &pods(30));
    evictions.evict("a", Some("job"), 0);
    assert_eq!(evictions.held_up("a", Some("job"), 1), None);
    assert!(evictions.held_up("b", Some("other"), 1).is_some());
}

#[test]
fn pods_without_controller_and_of_unknown_workloads_are_limited_by_namespace_alone() {
    let bare = with(&ready("bare", "n1"), &json!({"metadata": {"ownerReferences": null}}));
    let of_job = |name: &str| with(&ready(name, "n1"), &owned("batch/v1", "Job", "b"));
    let objects = [bare, of_job("x"), of_job("y")];
    let mut evictions = Evictions::new(&json!({"workload": {"duration": "10m", "maxMigrating": 1}}), &objects);
    evictions.evict("bare", None, 0);
    evictions.evict("x", None, 0);
    assert!(!evictions.is_held_up("bare", 1) && !evictions.is_held_up("y", 1));
    let mut evictions = Evictions::new(&json!({"namespace": {"duration": "10m", "maxMigrating": 1}}), &objects);
    evictions.evict("bare", None, 0);
    assert!(evictions.is_held_up("bare", 1) && evictions.is_held_up("y", 1));
}

#[test]
fn replica_sets_of_one_deployment_share_a_bucket() {
    let of = |name: &str, set: &str| with(&ready(name, "n1"), &owned("apps/v1", "ReplicaSet", set));
    let objects = [
        workload("apps/v1", "Deployment", "dep", 10),
        replica_set_of("dep", "rs1", 5),
        replica_set_of("dep", "rs2", 5),
        of("a", "rs1"),
        of("b", "rs2"),
    ];
    let mut evictions = Evictions::new(&json!({"workload": {"duration": "10m", "maxMigrating": 1}}), &objects);
    evictions.evict("a", None, 0);
    assert!(evictions.is_held_up("b", 1));
}

#[test]
fn the_rate_follows_the_replicas_and_old_buckets_are_forgotten() {
    let mut evictions = Evictions::new(&json!({"workload": {"duration": "100s", "maxMigrating": "10%"}}), &pods(10));
    evictions.evict("a", None, 0);
    assert!(evictions.is_held_up("b", 99_000));
    crate::workloads::set_workload(&mut evictions.cluster, &replica_set("rs", 100)).unwrap();
    evictions.evict("a", None, 100_000);
    assert!(evictions.is_held_up("b", 109_000) && !evictions.is_held_up("b", 110_000));
    let mut slow = Evictions::new(&json!({"workload": {"duration": "10s", "maxMigrating": 1, "burst": 9}}), &pods(10));
    slow.evict("a", Some("j"), 0);
    slow.evict("a", Some("k"), 14_999);
    assert_eq!(slow.limiters.buckets.values().map(|bucket| bucket.jobs.len()).sum::<usize>(), 2);
    slow.evict("a", Some("l"), 15_000);
    assert_eq!(slow.limiters.buckets.values().map(|bucket| bucket.jobs.len()).sum::<usize>(), 2);
    let bare = with(&ready("bare", "n1"), &json!({"metadata": {"ownerReferences": null}}));
    slow.cluster = cluster_of(&[bare]);
    slow.evict("bare", None, 30_000);
    assert_eq!(slow.limiters, ObjectLimiters::default());
}

#[test]
fn a_snapshot_keeps_the_limiters_and_nothing_else_of_that_type() {
    let mut cluster = cluster_of(&[]);
    assert_eq!(ObjectLimiters::of(&cluster), None);
    ObjectLimiters::default().store(&mut cluster);
    assert_eq!(ObjectLimiters::of(&cluster), Some(&ObjectLimiters::default()));
    assert_eq!(MigrationJob::all(&cluster).count(), 0);
}
