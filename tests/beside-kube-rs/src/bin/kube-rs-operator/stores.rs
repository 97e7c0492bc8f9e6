//! The controller with a store for each kind of child: what is stored already is not applied again.

use std::{fmt::Debug, sync::Arc, time::Duration};

use beside_kube_rs::{config_map, secret, service, stateful_set};
use futures::{Stream, StreamExt as _};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::StatefulSet,
        core::v1::{ConfigMap, Secret, Service},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    runtime::{
        PredicateConfig, WatchStreamExt as _,
        controller::{Action, Controller},
        predicates,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    cache::CacheCluster,
    reconcile::{self, Error, owned, status, write_status},
    tuned,
};

/// What the reconciler needs.
struct Context {
    writes: reconcile::Context,
    stateful_sets: Store<StatefulSet>,
    services: Store<Service>,
    config_maps: Store<ConfigMap>,
    secrets: Store<Secret>,
}

/// Runs until the process is ended.
pub async fn run(client: Client) {
    let (reader, writer) = reflector::store();
    let (stateful_sets, of_stateful_sets) = stored(&client);
    let (services, of_services) = stored(&client);
    let (config_maps, of_config_maps) = stored(&client);
    let (secrets, of_secrets) = stored(&client);
    Controller::for_stream(tuned::caches(&client, writer), reader)
        .owns_stream(of_stateful_sets)
        .owns_stream(of_services)
        .owns_stream(of_config_maps)
        .owns_stream(of_secrets)
        .with_config(tuned::config())
        .shutdown_on_signal()
        .run(
            reconcile,
            |cache, error, _| error_policy(&cache, error),
            Arc::new(Context { writes: reconcile::Context { client }, stateful_sets, services, config_maps, secrets }),
        )
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
}

fn error_policy(_: &CacheCluster, _: &Error) -> Action {
    Action::requeue(Duration::from_secs(5))
}

/// A store of children, and the stream that fills it.
fn stored<K>(client: &Client) -> (Store<K>, impl Stream<Item = watcher::Result<K>> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (reader, writer) = reflector::store();
    let stream = watcher(Api::<K>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|child: &mut K| child.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects()
        .predicate_filter(predicates::resource_version, PredicateConfig::default());
    (reader, stream)
}

/// Applies the children and the status where they differ from what is stored.
async fn reconcile(cache: Arc<CacheCluster>, context: Arc<Context>) -> Result<Action, Error> {
    let Context { writes, stateful_sets, services, config_maps, secrets } = &*context;
    // Without this a restart applies everything.
    let ready = futures::join!(
        stateful_sets.wait_until_ready(),
        services.wait_until_ready(),
        config_maps.wait_until_ready(),
        secrets.wait_until_ready()
    );
    let (Ok(()), Ok(()), Ok(()), Ok(())) = ready else { return Err(Error::Incomplete("a store".to_owned())) };
    let (name, memory) = (cache.name_any(), &cache.spec.memory.0);
    let set = apply(writes, stateful_sets, &cache, stateful_set(&name, cache.spec.replicas, memory)).await?;
    apply(writes, services, &cache, service(&name)).await?;
    apply(writes, config_maps, &cache, config_map(&name, memory)).await?;
    apply(writes, secrets, &cache, secret(&name)).await?;
    let status = status(&cache, &set);
    if cache.status.as_ref() != Some(&status) {
        write_status(writes, &cache, &status).await?;
    }
    Ok(Action::requeue(Duration::from_hours(1)))
}

/// The stored child where it shows all that is declared, otherwise what applying it made of it.
async fn apply<K>(
    context: &reconcile::Context,
    store: &Store<K>,
    cache: &CacheCluster,
    child: K,
) -> Result<Arc<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let declared = serde_json::to_value(owned(cache, child.clone())?).map_err(kube::Error::SerdeError)?;
    let at = ObjectRef::new(&cache.name_any()).within(&cache.namespace().unwrap_or_default());
    if let Some(stored) = store.get(&at) {
        let shown = serde_json::to_value(&*stored).map_err(kube::Error::SerdeError)?;
        if shows(&shown, &declared) {
            return Ok(stored);
        }
    }
    Ok(Arc::new(reconcile::apply(context, cache, child).await?))
}

/// Whether a value holds everything of another. A field that is declared no longer is not noticed.
fn shows(shown: &Value, declared: &Value) -> bool {
    match (shown, declared) {
        (Value::Object(shown), Value::Object(declared)) => {
            declared.iter().all(|(name, value)| shown.get(name).is_some_and(|shown| shows(shown, value)))
        }
        (Value::Array(shown), Value::Array(declared)) => {
            shown.len() == declared.len() && shown.iter().zip(declared).all(|(shown, declared)| shows(shown, declared))
        }
        (shown, declared) => shown == declared,
    }
}
