//! A pod in the queue.

use std::{cmp::Reverse, sync::Arc};

use koord_core::clock::Moment;
use koord_scheduler_framework::{PluginSet, pod::Pod};

use super::{Order, Return, Timings};

/// What was tried with a pod so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    pub attempts: u32,
    /// Attempts in which the pod was refused.
    pub refusals: u32,
    /// Attempts in a row that failed for other reasons.
    pub errors: u32,
    /// When it was tried first.
    pub first: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Active,
    /// Until the end of this second.
    Backoff {
        end: u64,
        is_error: bool,
    },
    Parked,
    /// Its plugin wakes it by itself.
    Held,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) pod: Arc<Pod>,
    pub(super) tried: Tried,
    /// When it came, or came back.
    pub(super) since: Moment,
    /// The same, or when it was looked at last because it had been here for long.
    pub(super) looked: Moment,
    pub(super) refused_by: PluginSet,
    /// The plugin that holds it back.
    pub(super) gate: Option<u8>,
    pub(super) place: Place,
}

impl Entry {
    pub(super) fn new(pod: Arc<Pod>, now: Moment) -> Self {
        let (tried, refused_by) = (Tried::default(), PluginSet::default());
        Self { pod, tried, since: now, looked: now, refused_by, gate: None, place: Place::Active }
    }

    /// The plugins that have refused it, or the one that holds it back.
    pub(super) fn stopped_by(&self) -> PluginSet {
        self.gate.map_or(self.refused_by, PluginSet::of)
    }

    pub(super) fn order(&self) -> Order {
        (Reverse(self.pod.template.priority), self.since)
    }

    pub(super) fn count(&mut self, why: Return) {
        match why {
            // Without nodes no plugin is called, so that any event may help.
            Return::Refused(refused_by) if refused_by.is_empty() => self.tried.errors += 1,
            Return::Refused(refused_by) => {
                self.refused_by = refused_by;
                self.tried.refusals += 1;
                self.tried.errors = 0;
            }
            Return::Failed => self.tried.errors += 1,
        }
    }

    /// The second until whose end it pauses after its last attempt; none before the first.
    pub(super) fn backoff_end(&self, timings: Timings) -> Option<u64> {
        let failures = if self.tried.errors > 0 { self.tried.errors } else { self.tried.refusals };
        let doublings = failures.checked_sub(1)?.min(31);
        let pause = timings.backoff.saturating_mul(1 << doublings).min(timings.backoff_max);
        Some((self.since + pause).since(Moment::default()).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn pauses_double_up_to_ten_seconds() {
        let pod = super::super::tests::pod("a", 0);
        let mut entry = Entry::new(pod, Moment::at(Duration::from_millis(2900)));
        let mut ends = vec![entry.backoff_end(Timings::default())];
        for _ in 0..6 {
            entry.count(Return::Refused(PluginSet::of(1)));
            ends.push(entry.backoff_end(Timings::default()));
        }
        assert_eq!(ends, [None, Some(3), Some(4), Some(6), Some(10), Some(12), Some(12)]);
        entry.count(Return::Failed);
        assert_eq!(entry.backoff_end(Timings::default()), Some(3), "errors in a row are counted by themselves");
    }
}
