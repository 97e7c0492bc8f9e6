//! Pods that a plugin keeps out because another one is tried on their behalf: an event that helps them has that one tried.

use std::sync::Arc;

use koord_core::clock::Moment;
use koord_scheduler_framework::pod::Pod;

use super::{
    Queue, QueueingHints,
    arrivals::Admission,
    entry::{Entry, Place},
};

impl Queue {
    /// An event may help a pod: it is tried again, or the one that is tried on its behalf.
    pub(super) fn admit_helped(&mut self, entry: Entry, now: Moment, hints: &dyn QueueingHints, admission: Admission) {
        let pod = Arc::clone(&entry.pod);
        self.admit(entry, now, hints, admission);
        self.try_instead(&pod, now, hints, admission);
    }

    /// A pod has come back: the representatives of pods that an event has helped meanwhile are tried again.
    pub(super) fn try_for_helped(&mut self, now: Moment, hints: &dyn QueueingHints) {
        for uid in std::mem::take(&mut self.helped) {
            if let Some(pod) = self.entries.get(&uid).map(|entry| Arc::clone(&entry.pod)) {
                self.try_instead(&pod, now, hints, Admission::Returned);
            }
        }
    }

    fn try_instead(&mut self, pod: &Pod, now: Moment, hints: &dyn QueueingHints, admission: Admission) {
        let gate = self.entries.get(&pod.uid).and_then(|entry| entry.gate);
        let Some(other) = gate.and_then(|plugin| hints.representative(pod, plugin)) else { return };
        match self.entries.get(&other).map(|entry| entry.place) {
            Some(Place::Parked | Place::Held) => {
                if let Some(entry) = self.take(&other) {
                    self.admit(entry, now, hints, admission);
                }
            }
            Some(Place::Backoff { .. }) => {}
            Some(Place::Active) | None => _ = self.helped.insert(pod.uid.clone()),
        }
    }
}
