//! Nominated pods, and their victims.

use std::{collections::BTreeSet, sync::Arc};

use koord_core::uid::Uid;

use super::{Cluster, Placed};
use crate::{columns::Row, pod::Pod};

impl Cluster {
    /// The nominated pods, with their rows.
    pub fn nominated(&self) -> impl Iterator<Item = (&Arc<Pod>, Row)> {
        self.nominated.values().map(|(pod, row)| (pod, *row))
    }

    /// The rows of nominated pods.
    pub(crate) fn nominated_rows(&self) -> BTreeSet<Row> {
        self.nominated().map(|(_, row)| row).collect()
    }

    /// The pods that are nominated to a row and that go before this one. Those of other schedulers do so only with a
    /// higher priority, because it is unknown which of two schedulers is faster.
    pub fn nominated_before(&self, pod: &Pod, row: Row) -> Vec<Arc<Pod>> {
        let goes_before = |other: &Pod| {
            let (other_priority, priority) = (other.template.priority, pod.template.priority);
            other.uid != pod.uid && (other_priority > priority || other_priority == priority && !self.is_foreign(other))
        };
        let there = self.nominated().filter(|(other, at)| *at == row && goes_before(other));
        there.filter(|(other, _)| self.pod(&other.uid).is_none()).map(|(other, _)| Arc::clone(other)).collect()
    }

    /// The row of a pod's nominated node.
    pub fn nomination(&self, uid: &Uid) -> Option<Row> {
        self.nominated.get(uid).map(|(_, row)| *row)
    }

    /// Room is being made for a pod; nowhere any more without a row.
    pub fn nominate(&mut self, pod: &Arc<Pod>, row: Option<Row>) {
        let old = match row {
            Some(row) => self.nominated.insert(pod.uid.clone(), (Arc::clone(pod), row)),
            None => self.nominated.remove(&pod.uid),
        };
        old.map(|(_, row)| row).into_iter().chain(row).for_each(|row| self.log.note(row));
    }

    /// Whether a pod is a victim: its eviction is ordered, or it is being deleted after one.
    pub fn is_evicted(&self, placed: &Placed) -> bool {
        self.evicted.contains_key(&placed.pod.uid) || placed.pod.deleting && placed.pod.is_preempted
    }

    /// Whether evictions are ordered for a pod that have not begun yet.
    pub fn awaits_evictions(&self, uid: &Uid) -> bool {
        let for_it = self.evicted.iter().filter(|(_, by)| *by == uid);
        for_it.filter_map(|(victim, _)| self.pods.get(victim)).any(|placed| !placed.pod.deleting)
    }

    /// The eviction of a pod is ordered, for another one.
    pub fn evict(&mut self, uid: &Uid, by: &Uid) {
        if self.pods.contains_key(uid) {
            self.evicted.insert(uid.clone(), by.clone());
        }
    }

    /// The eviction of a pod has failed. Gives the pod for which it was ordered.
    pub fn not_evicted(&mut self, uid: &Uid) -> Option<Uid> {
        self.evicted.remove(uid)
    }
}
