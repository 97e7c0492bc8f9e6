//! A pod in the queue.

use std::{cmp::Reverse, sync::Arc};

use koord_core::clock::Moment;

use super::{Order, Return, Timings};
use crate::pod::Pod;

/// Plugins of a profile, by their index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PluginSet(u64);

impl PluginSet {
    /// More plugins than any profile has.
    pub const PLUGINS_MAX: u8 = 64;

    /// One plugin.
    pub fn of(plugin: u8) -> Self {
        Self(1_u64.checked_shl(u32::from(plugin)).unwrap_or(0))
    }

    /// With another plugin.
    #[must_use]
    pub fn with(self, plugin: u8) -> Self {
        Self(self.0 | Self::of(plugin).0)
    }

    /// The set of these bits.
    pub(crate) fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A bit for each plugin.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// With all of another set.
    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The plugins, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let first = |bits: u64| (bits != 0).then_some(bits);
        std::iter::successors(first(self.0), move |bits| first(bits & (bits - 1)))
            .filter_map(|bits| u8::try_from(bits.trailing_zeros()).ok())
    }
}

/// What was tried with a pod so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// All attempts.
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
            // Without nodes no plugin is asked, and none can tell what would help.
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
    fn a_set_gives_back_its_plugins() {
        let set = PluginSet::of(3).with(63).with(3).with(200);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63]);
        assert!(PluginSet::default().is_empty() && !set.is_empty());
    }

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
