//! Pods that are being tried, or bound.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::uid::Uid;
use koord_scheduler_framework::pod::Pod;

/// A pod that is being tried, or bound.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    /// The number of the first event that its attempt has not seen.
    pub(super) since: u64,
    /// As it is now.
    pub(super) pod: Arc<Pod>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    pods: BTreeMap<Uid, Flying>,
    /// How many of them have not seen the events from this one on.
    by_since: BTreeMap<u64, usize>,
}

impl InFlight {
    pub(super) fn insert(&mut self, flying: Flying) {
        self.remove(&flying.pod.uid.clone());
        *self.by_since.entry(flying.since).or_default() += 1;
        self.pods.insert(flying.pod.uid.clone(), flying);
    }

    pub(super) fn remove(&mut self, uid: &Uid) -> Option<Flying> {
        let flying = self.pods.remove(uid)?;
        if let Some(pods) = self.by_since.get_mut(&flying.since) {
            *pods -= 1;
            if *pods == 0 {
                self.by_since.remove(&flying.since);
            }
        }
        Some(flying)
    }

    pub(super) fn get(&self, uid: &Uid) -> Option<&Flying> {
        self.pods.get(uid)
    }

    /// A pod, to be known differently.
    pub(super) fn pod_mut(&mut self, uid: &Uid) -> Option<&mut Arc<Pod>> {
        self.pods.get_mut(uid).map(|flying| &mut flying.pod)
    }

    /// All of them, by uid.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Flying> {
        self.pods.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// The first event that one of them has not seen.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_since.first_key_value().map(|(since, _)| *since)
    }
}
