//! Pods, and where they are.

use std::sync::Arc;

use koord_core::uid::Uid;

use super::{Cluster, Placed};
use crate::{columns::Row, hold::Holds, pod::Pod};

impl Cluster {
    /// The pods of a node, in the order of their uids.
    pub fn pods_on(&self, row: Row) -> impl Iterator<Item = &Placed> {
        let slot = self.slots.get(row.index()).map_or(&[][..], |slot| &slot.pods);
        slot.iter().filter_map(|uid| self.pods.get(uid))
    }

    /// All pods that are bound, or assumed to be.
    pub fn pods(&self) -> impl Iterator<Item = &Placed> {
        self.pods.values()
    }

    /// A pod that is bound, or assumed to be.
    pub fn pod(&self, uid: &Uid) -> Option<&Placed> {
        self.pods.get(uid)
    }

    /// The pods that are nowhere, of all schedulers.
    pub fn pending(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pending.values()
    }

    /// All pods as they were reported last, of all schedulers, wherever they are.
    pub fn known_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let placed = self.pods.values().map(|placed| &placed.pod);
        self.pending.values().chain(placed.filter(|pod| !self.pending.contains_key(&pod.uid)))
    }

    /// A pod that is nowhere.
    pub fn pending_pod(&self, uid: &Uid) -> Option<&Arc<Pod>> {
        self.pending.get(uid)
    }

    /// A pod became known, or is known differently.
    pub fn know(&mut self, pod: &Arc<Pod>) {
        let old = self.known(&pod.uid).cloned();
        if old.as_ref().is_some_and(|old| Arc::ptr_eq(old, pod) || old == pod) {
            return;
        }
        if pod.node.is_none() {
            self.pending.insert(pod.uid.clone(), Arc::clone(pod));
        } else {
            self.pending.remove(&pod.uid);
        }
        self.with_states(|states, cluster| {
            states.iter_mut().for_each(|state| state.pod(cluster, old.as_ref(), Some(pod)));
        });
    }

    /// A pod was deleted, or has ended. Gives its place, if it had one.
    pub fn forget(&mut self, uid: &Uid) -> Option<Placed> {
        let known = self.known(uid).cloned();
        let placed = self.remove_pod(uid);
        self.pending.remove(uid);
        if known.is_some() {
            self.with_states(|states, cluster| {
                states.iter_mut().for_each(|state| state.pod(cluster, known.as_ref(), None));
            });
        }
        placed
    }

    /// A pod as it was reported last; the assumed pod on a node may be older.
    fn known(&self, uid: &Uid) -> Option<&Arc<Pod>> {
        self.pending.get(uid).or_else(|| self.pods.get(uid).map(|placed| &placed.pod))
    }

    /// A pod was bound to a node, or is assumed to be; one that was elsewhere or different before has moved.
    pub fn place(&mut self, pod: Arc<Pod>, node: &Arc<str>, holds: Holds) {
        let evicted_by = self.evicted.get(&pod.uid).cloned();
        self.remove_pod(&pod.uid);
        self.evicted.extend(evicted_by.map(|by| (pod.uid.clone(), by)));
        let row = self.row_of(node);
        self.put(pod, row, holds);
        self.log.note(row);
    }

    /// A pod is gone from its node.
    pub fn remove_pod(&mut self, uid: &Uid) -> Option<Placed> {
        let placed = self.take(uid)?;
        self.evicted.remove(uid);
        self.log.note(placed.row);
        self.release(placed.row);
        Some(placed)
    }

    pub(super) fn put(&mut self, pod: Arc<Pod>, row: Row, holds: Holds) {
        let class = self.class(&pod.template);
        self.requested.add(row, class.requests());
        for (column, usage) in self.assumed_usage.iter_mut().zip(class.template().assumed_usage) {
            column[row.index()] = column[row.index()].saturating_add(usage);
        }
        let pods = &mut self.slots[row.index()].pods;
        if let Err(at) = pods.binary_search(&pod.uid) {
            pods.insert(at, pod.uid.clone());
        }
        let placed = Placed { pod, class, row, holds };
        self.assumed += usize::from(placed.pod.node.is_none());
        self.population.add(&placed);
        self.with_states(|states, cluster| states.iter_mut().for_each(|state| state.placed(cluster, &placed)));
        self.pods.insert(placed.pod.uid.clone(), placed);
    }

    pub(super) fn take(&mut self, uid: &Uid) -> Option<Placed> {
        let placed = self.pods.remove(uid)?;
        self.assumed -= usize::from(placed.pod.node.is_none());
        self.population.remove(&placed);
        let pods = &mut self.slots[placed.row.index()].pods;
        if let Ok(at) = pods.binary_search(uid) {
            pods.remove(at);
        }
        let is_exact = self.assumed_usage.iter().all(|column| column[placed.row.index()] < i64::MAX);
        if self.requested.subtract(placed.row, placed.class.requests()) && is_exact {
            for (column, usage) in self.assumed_usage.iter_mut().zip(placed.class.template().assumed_usage) {
                column[placed.row.index()] = column[placed.row.index()].saturating_sub(usage);
            }
        } else {
            self.recount(placed.row);
        }
        self.with_states(|states, cluster| states.iter_mut().for_each(|state| state.removed(cluster, &placed)));
        Some(placed)
    }
}
