//! The reconciler: it applies everything each time, as the documentation of kube-rs shows it.

use std::{fmt::Debug, sync::Arc, time::Duration};

use beside_kube_rs::{config_map, secret, service, stateful_set};
use k8s_openapi::{
    NamespaceResourceScope,
    api::apps::v1::StatefulSet,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::controller::Action,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::cache::{CacheCluster, CacheClusterStatus};

/// The name of the field manager.
pub const MANAGER: &str = "cache-operator";

/// What the reconciler needs.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
}

/// Why a cache cluster cannot be reconciled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refuses, or does not answer.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The object has no name or uid.
    #[error("{0} is not an object of the API server")]
    Incomplete(String),
}

/// Applies the children and the status.
pub async fn reconcile(cache: Arc<CacheCluster>, context: Arc<Context>) -> Result<Action, Error> {
    let (name, memory) = (cache.name_any(), &cache.spec.memory.0);
    let set = apply(&context, &cache, stateful_set(&name, cache.spec.replicas, memory)).await?;
    apply(&context, &cache, service(&name)).await?;
    apply(&context, &cache, config_map(&name, memory)).await?;
    apply(&context, &cache, secret(&name)).await?;
    write_status(&context, &cache, &status(&cache, &set)).await?;
    Ok(Action::requeue(Duration::from_hours(1)))
}

/// Tries again in a while.
pub fn error_policy(_: Arc<CacheCluster>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

/// The child with its name, namespace and owner.
pub fn owned<K: Resource<DynamicType = ()>>(cache: &CacheCluster, mut child: K) -> Result<K, Error> {
    let owner = cache.controller_owner_ref(&()).ok_or_else(|| Error::Incomplete(cache.name_any()))?;
    let metadata = child.meta_mut();
    metadata.name = Some(cache.name_any());
    metadata.namespace = cache.namespace();
    metadata.owner_references = Some(vec![owner]);
    Ok(child)
}

/// Applies a child and returns what the API server made of it.
pub async fn apply<K>(context: &Context, cache: &CacheCluster, child: K) -> Result<K, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let child = owned(cache, child)?;
    let children = Api::<K>::namespaced(context.client.clone(), &cache.namespace().unwrap_or_default());
    let how = PatchParams::apply(MANAGER).force();
    Ok(children.patch(&cache.name_any(), &how, &Patch::Apply(&child)).await?)
}

/// The status of a cache cluster with these servers.
pub fn status(cache: &CacheCluster, set: &StatefulSet) -> CacheClusterStatus {
    let ready = set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
    let mut condition = Condition {
        type_: "Ready".to_owned(),
        status: if ready >= cache.spec.replicas { "True" } else { "False" }.to_owned(),
        reason: "Servers".to_owned(),
        message: format!("{ready} of {} servers are ready", cache.spec.replicas),
        observed_generation: cache.metadata.generation,
        last_transition_time: Time(jiff::Timestamp::now()),
    };
    let known = cache.status.iter().flat_map(|status| &status.conditions).find(|known| known.type_ == "Ready");
    if let Some(known) = known.filter(|known| known.status == condition.status) {
        condition.last_transition_time = known.last_transition_time.clone();
    }
    CacheClusterStatus { ready, conditions: vec![condition] }
}

/// Applies the status.
pub async fn write_status(context: &Context, cache: &CacheCluster, status: &CacheClusterStatus) -> Result<(), Error> {
    let caches = Api::<CacheCluster>::namespaced(context.client.clone(), &cache.namespace().unwrap_or_default());
    let object = json!({
        "apiVersion": CacheCluster::api_version(&()), "kind": CacheCluster::kind(&()), "status": status,
    });
    let how = PatchParams::apply(MANAGER).force();
    caches.patch_status(&cache.name_any(), &how, &Patch::Apply(&object)).await?;
    Ok(())
}
