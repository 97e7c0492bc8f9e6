//! The hollow kubelet of a whole fleet: one watch over the bound pods, and the writes that follow from it.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use koord_client::clock::SharedClock;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    fleet::{Fleet, IN_FLIGHT, PAUSE_AFTER_FAILURE, has_code},
    pod::{Step, next_step},
    roster::{Roster, node_name},
};

/// Pods that are bound to some node.
const BOUND: &str = "spec.nodeName!=";

/// Pods that wait for their turn; the watch is read no faster than they are dealt with.
const WAITING_MAX: usize = 1024;

/// Lets the pods on a fleet's nodes run, and finishes their deletion.
#[derive(Clone)]
pub struct Kubelet {
    fleet: Fleet,
    client: Client,
    clock: SharedClock,
    roster: Roster,
}

impl Kubelet {
    /// A kubelet for all nodes of a fleet. What it sees running is on the roster.
    pub fn new(fleet: Fleet, client: Client, clock: SharedClock, roster: Roster) -> Self {
        Self { fleet, client, clock, roster }
    }

    /// Works for as long as it is polled.
    pub async fn run(self) {
        let (todo, mut waiting) = mpsc::channel::<Pod>(WAITING_MAX);
        let watching = async {
            loop {
                // Whether the watch ended, expired or failed: the next list shows everything.
                let _ = Box::pin(self.follow(&todo)).await;
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
            }
        };
        let pods = futures::stream::poll_fn(|context| waiting.poll_recv(context));
        let working = pods.for_each_concurrent(IN_FLIGHT, |pod| self.advance(pod));
        tokio::select! { biased; () = watching => {}, () = working => {} }
    }

    /// Lists the bound pods and follows their changes until the watch ends.
    async fn follow(&self, todo: &mpsc::Sender<Pod>) -> kube::Result<()> {
        let api: Api<Pod> = Api::all(self.client.clone());
        let list = api.list(&ListParams::default().fields(BOUND)).await?;
        self.roster.clear();
        for pod in list.items {
            self.see(pod, todo).await;
        }
        let version = list.metadata.resource_version.unwrap_or_default();
        let mut events = api.watch(&WatchParams::default().fields(BOUND), &version).await?.boxed();
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.see(pod, todo).await,
                WatchEvent::Deleted(pod) => self.roster.strike(&pod),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => break,
            }
        }
        Ok(())
    }

    async fn see(&self, pod: Pod, todo: &mpsc::Sender<Pod>) {
        let Some(node) = node_name(&pod).and_then(|name| self.fleet.node(name)) else { return };
        self.roster.note(&pod);
        if next_step(&pod, &node.address(), self.clock.now()) != Step::Rest {
            // The receiver lives as long as this future.
            let _ = todo.send(pod).await;
        }
    }

    /// Does what a pod needs next. What fails is seen again: by the change that made it fail, or by the next list.
    async fn advance(&self, pod: Pod) {
        let Some(node) = node_name(&pod).and_then(|name| self.fleet.node(name)) else { return };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let (name, uid) = (pod.name_any(), pod.uid());
        for _ in 0..TRIES_MAX {
            let result = match next_step(&pod, &node.address(), self.clock.now()) {
                Step::Rest => return,
                Step::Run(status) => {
                    let patch = json!({ "metadata": { "uid": uid }, "status": status });
                    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
                }
                Step::Remove => {
                    let preconditions = Preconditions { uid: uid.clone(), resource_version: None };
                    let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
                    api.delete(&name, &params).await.map(drop)
                }
            };
            match result {
                // another pod of the same name, or none: whatever was to be done for this one is done
                Err(error) if has_code(&error, 404) || has_code(&error, 409) || has_code(&error, 422) => return,
                Ok(()) => return,
                Err(_) => tokio::time::sleep(PAUSE_AFTER_FAILURE).await,
            }
        }
    }
}

/// How often a write is tried before the pod waits for its next change.
const TRIES_MAX: u32 = 5;
