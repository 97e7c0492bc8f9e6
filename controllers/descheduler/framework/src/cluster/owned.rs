//! The pods of each object that owns some.

use std::collections::BTreeMap;

use koord_core::uid::Uid;

use super::PodId;
use crate::pod::Pod;

/// Owners by their uid.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners(BTreeMap<Uid, Owned>);

#[derive(Clone, Debug, Default)]
struct Owned {
    pods: Vec<PodId>,
    /// How many of them it controls that are not available.
    unavailable: usize,
}

impl Owners {
    pub(super) fn add(&mut self, id: PodId, pod: &Pod) {
        for (place, reference) in pod.owners.iter().enumerate() {
            let uid = &reference.owner.uid;
            // A pod may name an owner twice.
            if !pod.owners.iter().take(place).any(|earlier| earlier.owner.uid == *uid) {
                let owned = self.0.entry(uid.clone()).or_default();
                owned.pods.push(id);
                owned.unavailable += usize::from(is_unavailable(pod, uid));
            }
        }
    }

    pub(super) fn remove(&mut self, id: PodId, pod: &Pod) {
        for reference in pod.owners.iter() {
            let uid = &reference.owner.uid;
            let Some(owned) = self.0.get_mut(uid) else { continue };
            let Some(place) = owned.pods.iter().position(|other| *other == id) else { continue };
            owned.pods.remove(place);
            owned.unavailable -= usize::from(is_unavailable(pod, uid));
            if owned.pods.is_empty() {
                self.0.remove(uid);
            }
        }
    }

    pub(super) fn pods(&self, owner: &Uid) -> &[PodId] {
        self.0.get(owner).map_or(&[], |owned| &owned.pods)
    }

    pub(super) fn unavailable(&self, owner: &Uid) -> usize {
        self.0.get(owner).map_or(0, |owned| owned.unavailable)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Uid> {
        self.0.keys()
    }
}

/// Whether the owner controls the pod, and the pod is not available.
fn is_unavailable(pod: &Pod, owner: &Uid) -> bool {
    !pod.is_available() && pod.controller().is_some_and(|controller| controller.uid == *owner)
}
