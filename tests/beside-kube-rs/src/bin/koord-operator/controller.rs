//! The controller.

use std::sync::Arc;

use beside_kube_rs::{config_map, secret, service, stateful_set};
use koord::{
    Projection,
    jiff::Timestamp,
    k8s_openapi::api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, Secret, Service},
    },
    runtime::{
        child::Child,
        condition::{self, condition},
        controller::Controller,
        error::ReconcileError,
        key::ObjectKey,
        outcome::Outcome,
        store::Store,
    },
    serde::Deserialize,
};

use crate::cache::{CacheCluster, CacheClusterSpec, CacheClusterStatus};

/// What the cache keeps of a CacheCluster.
#[derive(PartialEq, Projection)]
#[koord(kind = CacheCluster, runtime = koord::runtime)]
pub struct CacheView {
    spec: CacheClusterSpec,
    status: Option<CacheClusterStatus>,
}

/// What the controller reads of a StatefulSet beside what it applied.
#[derive(PartialEq, Deserialize)]
#[serde(crate = "koord::serde")]
pub struct Servers {
    #[serde(default)]
    status: Counts,
}

#[derive(PartialEq, Default, Deserialize)]
#[serde(crate = "koord::serde", rename_all = "camelCase")]
struct Counts {
    #[serde(default)]
    ready_replicas: i32,
}

/// Four children and a status for every CacheCluster.
#[koord::controller(
    name = "cache",
    for = caches,
    owns(stateful_sets),
    owns(services),
    owns(config_maps),
    owns(secrets),
    concurrency = 16,
    rbac(group = "cache.example.com", resource = "cacheclusters/status", verbs = [patch]),
    runtime = koord::runtime,
)]
pub struct Caches {
    caches: Arc<Store<CacheView>>,
    stateful_sets: Arc<Store<Child<StatefulSet, Servers>>>,
    services: Arc<Store<Child<Service>>>,
    config_maps: Arc<Store<Child<ConfigMap>>>,
    secrets: Arc<Store<Child<Secret>>>,
}

impl Controller for Caches {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let (caches, stateful_sets) = (self.caches.read(), self.stateful_sets.read());
        let Some(cache) = caches.get(key.as_str()).filter(|cache| !cache.deleting) else {
            return Ok(Outcome::settled());
        };
        let CacheView { spec, status } = &*cache.value;
        let (name, memory) = (key.name(), spec.memory.to_string());
        let mut outcome = Outcome::of(key, cache);
        outcome.apply(&stateful_sets, key, &stateful_set(name, spec.replicas, &memory))?;
        outcome.apply(&self.services.read(), key, &service(name))?;
        outcome.apply(&self.config_maps.read(), key, &config_map(name, &memory))?;
        outcome.apply(&self.secrets.read(), key, &secret(name))?;

        let ready = stateful_sets.get(key.as_str()).map_or(0, |set| set.value.seen.status.ready_replicas);
        let message = format!("{ready} of {} servers are ready", spec.replicas);
        let is_ready = condition("Ready", Some(ready >= spec.replicas), "Servers", &message, cache.generation);
        let mut conditions = status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        condition::set(&mut conditions, is_ready, now);
        outcome.status(&caches, key, &CacheClusterStatus { ready, conditions })?;
        Ok(outcome)
    }
}
