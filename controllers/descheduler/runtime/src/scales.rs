//! The replicas of workloads whose kinds are not watched: they are read by the scale subresource, and read again after a while.

use std::{any::TypeId, collections::BTreeMap, time::Duration};

use koord_descheduler_framework::pod::Owner;
use koord_descheduler_migration::workloads::{Scale, controllers_to_look_up};
use koord_runtime::{api::Api, clock::Moment, uid::Uid};
use serde_json::Value;

use crate::migration::SharedCluster;

/// How long what was read is trusted.
const FRESH: Duration = Duration::from_mins(1);
/// How many workloads are read at a time.
const READ_MAX: usize = 32;

/// Which workloads have been read, and when.
#[derive(Default)]
pub(crate) struct Scales {
    read: BTreeMap<Uid, Moment>,
    /// The plurals of kinds, by `apiVersion/kind`.
    plurals: BTreeMap<String, String>,
}

impl Scales {
    /// Reads workloads that pods of the snapshot have and that are not known, and lets the snapshot know them.
    pub(crate) async fn look_up(&mut self, api: &Api, cluster: &SharedCluster, now: Moment) {
        let wanted = {
            let mut cluster = cluster.lock();
            self.read.retain(|uid, read| {
                let is_fresh = *read + FRESH > now;
                if !is_fresh {
                    cluster.remove_object(TypeId::of::<Scale>(), &uid.to_string());
                }
                is_fresh
            });
            controllers_to_look_up(&cluster)
        };
        for (uid, (namespace, owner)) in wanted.into_iter().take(READ_MAX) {
            let scale = self.read(api, &namespace, &owner).await;
            cluster.lock().set_object(scale.object(&uid));
            self.read.insert(uid, now);
        }
    }

    async fn read(&mut self, api: &Api, namespace: &str, owner: &Owner) -> Scale {
        let root = if owner.api_version.contains('/') { "/apis" } else { "/api" };
        let version = format!("{root}/{}", owner.api_version);
        let Some(plural) = self.plural(api, &version, &owner.kind).await else { return Scale::Failed };
        let uri = format!("{version}/namespaces/{namespace}/{plural}/{}/scale", owner.name);
        let Ok(answer) = api.get(uri).await else { return Scale::Failed };
        let scale: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        match (answer.code, scale["spec"]["replicas"].as_i64()) {
            // Another has its name.
            (200, _) if scale["metadata"]["uid"].as_str().is_some_and(|uid| Uid::from(uid) != owner.uid) => {
                Scale::NotFound
            }
            (200, replicas) => Scale::Replicas(replicas.and_then(|count| i32::try_from(count).ok()).unwrap_or(0)),
            (404, _) => Scale::NotFound,
            _ => Scale::Failed,
        }
    }

    /// The plural of a kind, by discovery.
    async fn plural(&mut self, api: &Api, version: &str, kind: &str) -> Option<String> {
        let key = format!("{version}/{kind}");
        if let Some(known) = self.plurals.get(&key) {
            return Some(known.clone());
        }
        let answer = api.get(version.to_owned()).await.ok().filter(|answer| answer.code == 200)?;
        let list: Value = serde_json::from_str(&answer.body).ok()?;
        let is_of_kind = |resource: &&Value| {
            resource["kind"] == kind && resource["name"].as_str().is_some_and(|name| !name.contains('/'))
        };
        let plural = list["resources"].as_array()?.iter().find(is_of_kind)?["name"].as_str()?.to_owned();
        self.plurals.insert(key, plural.clone());
        Some(plural)
    }
}
