//! Pods that a plugin holds back because another one is tried in their place: what helps them has that one tried.

use std::sync::Arc;

use koord_core::clock::Moment;

use super::{Judge, Queue, arrivals::Admission, entry::Entry, entry::Place};
use crate::pod::Pod;

impl Queue {
    /// Something may help a pod: it is tried again, or the one that is tried in its place.
    pub(super) fn admit_helped(&mut self, entry: Entry, now: Moment, judge: &dyn Judge, admission: Admission) {
        let pod = Arc::clone(&entry.pod);
        self.admit(entry, now, judge, admission);
        self.try_instead(&pod, now, judge, admission);
    }

    /// A pod has come back: those that are tried in the place of pods which something has helped meanwhile are tried again.
    pub(super) fn try_for_helped(&mut self, now: Moment, judge: &dyn Judge) {
        for uid in std::mem::take(&mut self.helped) {
            if let Some(pod) = self.entries.get(&uid).map(|entry| Arc::clone(&entry.pod)) {
                self.try_instead(&pod, now, judge, Admission::Returned);
            }
        }
    }

    fn try_instead(&mut self, pod: &Pod, now: Moment, judge: &dyn Judge, admission: Admission) {
        let gate = self.entries.get(&pod.uid).and_then(|entry| entry.gate);
        let Some(other) = gate.and_then(|plugin| judge.instead(pod, plugin)) else { return };
        match self.entries.get(&other).map(|entry| entry.place) {
            Some(Place::Parked | Place::Held) => {
                if let Some(entry) = self.take(&other) {
                    self.admit(entry, now, judge, admission);
                }
            }
            Some(Place::Backoff { .. }) => {}
            Some(Place::Active) | None => _ = self.helped.insert(pod.uid.clone()),
        }
    }
}
