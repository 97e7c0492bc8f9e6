//! Nodes and pods for the tests of strategies, and what a strategy evicts of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod measured;
pub mod metrics_server;

use std::sync::Arc;

use jiff::Timestamp;
use koord_config::{Args, arguments};
use koord_descheduler_framework::{
    Cluster, Descheduler, Evict, Filter, Input, Limits, Means, Memory, Plan, Plugin, PodId, PreparedEvict,
    PreparedFilter, Profile, Reason, ReasonCode, Refusal, Registration, Step, VerdictScope,
};
use serde_json::{Value, json};

pub use self::measured::{Load, MeasuredCluster, NAMESPACE, REPORTED};

/// Arguments of a plugin as a configuration has them.
pub fn args<T: Args>(plugin: &str, args: &Value) -> T {
    arguments(args).unwrap_or_else(|error| panic!("arguments of {plugin}: {error}"))
}

pub fn node(name: &str) -> Value {
    let amounts = json!({"cpu": "8", "memory": "16Gi", "pods": "110"});
    json!({"kind": "Node", "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "status": {"allocatable": amounts}})
}

/// A running pod of a ReplicaSet.
pub fn pod(name: &str, node: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true});
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]});
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "app:1"}]});
    json!({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
}

/// The object with a JSON merge patch.
pub fn with(object: &Value, patch: &Value) -> Value {
    koord_resource::schema::patch::merge::apply(object.clone(), patch)
}

pub fn cluster(objects: &[Value]) -> Cluster {
    let (cluster, errors) = Cluster::of(objects);
    assert_eq!(errors, []);
    cluster
}

/// Lets every pod go.
pub struct Everything;

impl Plugin for Everything {
    fn name(&self) -> &'static str {
        "Everything"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).filter(&self).evict(&self)
    }
}

impl Filter for Everything {
    fn prepare_filter<'a>(&'a self, _: &'a Cluster, _: Timestamp) -> Box<dyn PreparedFilter + 'a> {
        Box::new(Self)
    }
}

impl PreparedFilter for Everything {
    fn filter(&self, _: PodId) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Evict for Everything {
    fn prepare_evict<'a>(&'a self, _: &'a Cluster, _: Timestamp) -> Box<dyn PreparedEvict + 'a> {
        Box::new(Self)
    }
}

impl PreparedEvict for Everything {
    fn evict(&mut self, _: PodId, _: &Reason) -> Result<Means, Refusal> {
        Ok(Means::Eviction { delete_options: None })
    }
}

/// One profile with a strategy and a plugin that says which pods may be evicted.
pub fn descheduler(strategy: impl Plugin, evictor: impl Plugin) -> Descheduler {
    let (strategy, evictor) = (Arc::new(strategy).register(), Arc::new(evictor).register());
    let [deschedule, balance] = match strategy.deschedule {
        Some(_) => [vec![strategy], vec![]],
        None => [vec![], vec![strategy]],
    };
    let profile = Profile::new("p", None, [deschedule, balance, vec![evictor.clone()], vec![evictor]]).unwrap();
    Descheduler { profiles: vec![profile], nodes: None, limits: Limits::default() }
}

/// What a strategy alone comes to in its first pass, where every pod may be evicted.
pub fn plan(strategy: impl Plugin, cluster: &Cluster, now_seconds: i64) -> Plan {
    let now = Timestamp::from_second(now_seconds).unwrap();
    descheduler(strategy, Everything).pass(&Input::new(cluster, &Memory::default(), now))
}

/// The names of the pods that a strategy evicts at a time, in this order, where every pod may be evicted.
pub fn evicted(strategy: impl Plugin, cluster: &Cluster, now_seconds: i64) -> Vec<String> {
    evicted_through(strategy, Everything, cluster, now_seconds)
}

/// The same, where a plugin says which pods may be evicted.
pub fn evicted_through(
    strategy: impl Plugin,
    evictor: impl Plugin,
    cluster: &Cluster,
    now_seconds: i64,
) -> Vec<String> {
    let plan = explained(strategy, evictor, cluster, now_seconds);
    let names = plan.steps.iter().filter_map(Step::eviction).map(|eviction| eviction.pod.key.name().to_owned());
    names.collect()
}

/// Why pods stay where every pod may be evicted: the names of the pods with the codes, in the order in which they are left.
pub fn verdicts(strategy: impl Plugin, cluster: &Cluster, now_seconds: i64) -> Vec<(String, ReasonCode)> {
    let plan = explained(strategy, Everything, cluster, now_seconds);
    plan.verdicts.iter().map(|verdict| (verdict.pod.name().to_owned(), verdict.refusal.code)).collect()
}

/// What a strategy and a plugin that says which pods may be evicted come to, with the verdicts of all pods.
fn explained(strategy: impl Plugin, evictor: impl Plugin, cluster: &Cluster, now_seconds: i64) -> Plan {
    let now = Timestamp::from_second(now_seconds).unwrap();
    let memory = Memory::default();
    let input = Input { verdicts_of: VerdictScope::All(usize::MAX), ..Input::new(cluster, &memory, now) };
    let plan = descheduler(strategy, evictor).pass(&input);
    assert_eq!((&plan.errors, plan.skipped), (&vec![], None));
    plan
}
