//! The controller as the optimization guide of kube-rs has it: streams that drop `managedFields` and what changes nothing, a limit on what
//! runs at once, and a second in which the events of one object are collected.

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    core::PartialObjectMeta,
    runtime::{
        PredicateConfig, WatchStreamExt as _,
        controller::{Config, Controller},
        predicates,
        reflector::{self, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;

use crate::{
    cache::CacheCluster,
    reconcile::{Context, error_policy, reconcile},
};

/// Runs until the process is ended.
pub async fn run(client: Client) {
    let (reader, writer) = reflector::store();
    Controller::for_stream(caches(&client, writer), reader)
        .owns_stream(metadata::<StatefulSet>(&client))
        .owns_stream(metadata::<Service>(&client))
        .owns_stream(metadata::<ConfigMap>(&client))
        .owns_stream(metadata::<Secret>(&client))
        .with_config(config())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client }))
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
}

/// As many at once as the other operator runs.
pub fn config() -> Config {
    Config::default().concurrency(16).debounce(Duration::from_secs(1))
}

/// Cache clusters whose spec has changed.
pub fn caches(
    client: &Client,
    writer: Writer<CacheCluster>,
) -> impl Stream<Item = watcher::Result<CacheCluster>> + Send + 'static {
    watcher(Api::<CacheCluster>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|cache| cache.managed_fields_mut().clear())
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default())
}

/// Changes of children, of which the metadata is enough.
fn metadata<K>(client: &Client) -> impl Stream<Item = watcher::Result<PartialObjectMeta<K>>> + Send + 'static
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(Api::<PartialObjectMeta<K>>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .predicate_filter(predicates::resource_version, PredicateConfig::default())
}
