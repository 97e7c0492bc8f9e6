//! Jobs, workloads and clusters for tests.

use std::sync::Arc;

use jiff::Timestamp;
use koord_descheduler_framework::{
    Cluster, Deschedule, Descheduler, Eviction, Input, Limits, Memory, Pass, Plugin, Profile, ReasonCode, Refusal,
    Registration, StrategyError,
};
use koord_descheduler_testing::{args, node, pod, with};
use serde_json::{Value, json};

use crate::{MigrationController, MigrationJob, workloads::set_workload};

pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

pub(crate) fn controller(arguments: &Value) -> MigrationController {
    MigrationController::new(&args("MigrationController", arguments)).unwrap()
}

/// A job of a pod of the namespace `default`.
pub(crate) fn job(name: &str, pod: &str) -> Value {
    let reference = json!({"namespace": "default", "name": pod});
    json!({"kind": "PodMigrationJob", "metadata": {"name": name, "uid": name}, "spec": {"podRef": reference}})
}

pub(crate) fn running(name: &str, pod: &str) -> Value {
    with(&job(name, pod), &json!({"status": {"phase": "Running"}}))
}

/// A workload of the namespace `default`, whose uid is its name.
pub(crate) fn workload(api_version: &str, kind: &str, name: &str, replicas: i32) -> Value {
    let metadata = json!({"name": name, "namespace": "default", "uid": name});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"replicas": replicas}})
}

pub(crate) fn replica_set(name: &str, replicas: i32) -> Value {
    workload("apps/v1", "ReplicaSet", name, replicas)
}

/// A ReplicaSet of a Deployment.
pub(crate) fn replica_set_of(deployment: &str, name: &str, replicas: i32) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "uid": deployment, "controller": true});
    with(&replica_set(name, replicas), &json!({"metadata": {"ownerReferences": [owner]}}))
}

/// Owner references with one controller, whose uid is its name.
pub(crate) fn owned(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": true}
    ]}})
}

/// A ready pod that a koord-scheduler has scheduled, of the ReplicaSet `rs`.
pub(crate) fn ready(name: &str, node: &str) -> Value {
    let conditions = json!([{"type": "Ready", "status": "True"}]);
    with(&pod(name, node), &json!({"spec": {"schedulerName": "koord-scheduler"}, "status": {"conditions": conditions}}))
}

/// Two nodes and these objects. Their order does not matter.
pub(crate) fn cluster_of(objects: &[Value]) -> Cluster {
    let known: Vec<Value> = [node("n1"), node("n2")].iter().chain(objects).cloned().collect();
    let mut cluster = koord_descheduler_testing::cluster(&known);
    for object in objects {
        if object["kind"] == "PodMigrationJob" {
            cluster.set_json::<MigrationJob>(object).unwrap();
        } else {
            set_workload(&mut cluster, object).unwrap();
        }
    }
    cluster
}

/// Evicts all pods of its nodes.
struct EvictAll;

impl Plugin for EvictAll {
    fn name(&self) -> &'static str {
        "EvictAll"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for EvictAll {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        for (id, _) in pass.pods().collect::<Vec<_>>() {
            if pass.filter(id) && pass.pre_eviction_filter(id) {
                let reason = Refusal::from(ReasonCode::FailedPod).reason();
                pass.evict(id, reason, "");
            }
        }
        Ok(())
    }
}

/// What profiles with the same arguments evict in one pass.
pub(crate) fn evictions(arguments: &Value, profiles: &[&str], cluster: &Cluster) -> Vec<Eviction> {
    let controller = Arc::new(controller(arguments));
    let profile = |name: &&str| {
        let evictor = Arc::clone(&controller).register();
        let strategy = Arc::new(EvictAll).register();
        Profile::new(*name, None, [vec![strategy], vec![], vec![evictor.clone()], vec![evictor]]).unwrap()
    };
    let profiles = profiles.iter().map(profile).collect();
    let descheduler = Descheduler { profiles, nodes: None, limits: Limits::default() };
    let plan = descheduler.pass(&Input::new(cluster, &Memory::default(), at(0)));
    plan.steps.iter().filter_map(|step| step.eviction()).cloned().collect()
}
