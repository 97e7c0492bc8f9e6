//! Evictions that were accepted, until their pods are gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_system::ContainerId;

/// How a pod was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Through the API: the pod goes.
    Api,
    /// Its containers were stopped: the pod stays, and may start them anew.
    StoppedContainers,
}

/// Pods whose eviction was accepted and which have not released what they have yet.
#[derive(Debug, Default)]
pub struct Ledger {
    accepted: BTreeMap<Arc<str>, Entry>,
}

#[derive(Debug)]
struct Entry {
    at: Moment,
    /// The containers that were stopped; `None` where the whole pod goes.
    stopped: Option<BTreeSet<ContainerId>>,
}

impl Ledger {
    /// Remembers an accepted eviction.
    pub fn accept(&mut self, pod: &Pod, means: Means, now: Moment) {
        let stopped = match means {
            Means::Api => None,
            Means::StoppedContainers => {
                Some(pod.regular_containers().filter_map(|container| container.id.clone()).collect())
            }
        };
        self.accepted.insert(Arc::clone(&pod.uid), Entry { at: now, stopped });
    }

    /// Forgets pods that are gone: those that are not listed any more or have ended, and those none of whose stopped containers runs.
    pub fn retain(&mut self, pods: &[Arc<Pod>]) {
        self.accepted.retain(|uid, entry| {
            let pod = pods.iter().find(|pod| pod.uid == *uid && !pod.has_ended());
            match (pod, &entry.stopped) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(pod), Some(stopped)) => pod.regular_containers().any(|container| {
                    container.is_running() && container.id.as_ref().is_some_and(|id| stopped.contains(id))
                }),
            }
        });
    }

    /// Whether what a pod has will be released without another eviction: its eviction was accepted, or it is terminating.
    pub fn is_pending(&self, pod: &Pod) -> bool {
        pod.is_terminating || self.accepted.contains_key(&pod.uid)
    }

    /// When the eviction of a pod was accepted.
    pub fn accepted_at(&self, uid: &str) -> Option<Moment> {
        self.accepted.get(uid).map(|entry| entry.at)
    }

    /// How many pods are waited for.
    pub fn len(&self) -> usize {
        self.accepted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.accepted.is_empty()
    }
}
