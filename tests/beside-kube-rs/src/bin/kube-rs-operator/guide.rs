//! The controller as the documentation of `Controller` begins: `new` and `owns`, which watches children's metadata alone.

use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{
    Api, Client,
    runtime::{controller::Controller, watcher},
};

use crate::{
    cache::CacheCluster,
    reconcile::{Context, error_policy, reconcile},
};

/// Runs until the process is ended.
pub async fn run(client: Client) {
    Controller::new(Api::<CacheCluster>::all(client.clone()), watcher::Config::default())
        .owns(Api::<StatefulSet>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Secret>::all(client.clone()), watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client }))
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
}
