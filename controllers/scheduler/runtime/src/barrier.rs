//! The gate `SyncBarrier`: who has just become leader decides nothing before its cache of pods is as new as a write of its own.

use std::time::Duration;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Api,
    cache::Revision,
    clock::SharedClock,
    error::{Fault, ReconcileError},
    key::ObjectKey,
    write::{Action, Write},
};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{agreement::LOOK, feed::Pods};

/// How soon a write that has failed is tried again: the first time, and at the latest. The pause doubles with each failure.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// What a new leader writes before it decides, and how long it waits until it has seen that.
#[derive(Clone, Debug)]
pub struct SyncBarrier {
    /// The pod that is written. Where there is none, nothing is waited for.
    pub pod: ObjectKey,
    /// The name of the Lease.
    pub lease: String,
    /// After this time the leader decides all the same.
    pub timeout: Duration,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

impl SyncBarrier {
    /// Waits until the cache holds what was written of pods before, or until the time or the lead is over.
    pub(crate) async fn pass(&self, pods: &Pods, clock: &SharedClock, api: &Api, end: &CancellationToken) {
        let seen = async {
            let Some(written) = self.written(clock, api).await else { return };
            while pods.revision() < written {
                clock.sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = seen => {}
            () = clock.sleep(self.timeout) => {
                tracing::warn!(pod = %self.pod, timeout = ?self.timeout, "the cache of pods is behind the sync barrier; pods are scheduled all the same");
            }
        }
    }

    /// The revision of a write of the pod; none where it cannot be written.
    async fn written(&self, clock: &SharedClock, api: &Api) -> Option<Revision> {
        let name = format!("scheduling.koordinator.sh/sync-barrier-{}", self.lease);
        let (mut pause, mut is_reported) = (PAUSE.0, false);
        loop {
            let patch = json!({"metadata": {"annotations": {&name: clock.now().to_string()}}});
            let action = Action::Patch { subresource: "", patch };
            let write = Write { kind: ResourceKind::POD, key: self.pod.clone(), action };
            match api.write(&write).await.and_then(|answer| revision(&answer.body)) {
                Ok(revision) => return Some(revision),
                // There is no such pod, or it may not be written.
                Err(error) if error.stale || error.fault == Fault::User => {
                    tracing::info!(%error, "there is no sync barrier: pods are scheduled at once");
                    return None;
                }
                Err(error) if std::mem::replace(&mut is_reported, true) => {
                    tracing::debug!(%error, "the sync barrier could not be written");
                }
                Err(error) => tracing::warn!(%error, "the sync barrier could not be written; it is tried again"),
            }
            clock.sleep(pause).await;
            pause = PAUSE.1.min(pause * 2);
        }
    }
}

/// The revision of an object.
fn revision(body: &str) -> Result<Revision, ReconcileError> {
    let error = |text: String| ReconcileError::new(Fault::Api, text);
    let object: Object = serde_json::from_str(body).map_err(|reason| error(reason.to_string()))?;
    Revision::parse(&object.metadata.resource_version).map_err(|reason| error(reason.to_string()))
}
