//! How long the parts of attempts take, by a clock that is given.

use std::time::Duration;

use koord_core::clock::{Moment, SharedClock};

use super::Engine;

/// A part of an attempt, under the name that the scheduling framework has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The search for a node, from PreFilter to Score: what is known from before is repaired, so that there is no time of each.
    Filter,
    /// The search for room.
    PostFilter,
    /// What the pod is given on its node.
    Reserve,
    /// Whether it is bound at once.
    Permit,
}

impl Part {
    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "Filter",
            Self::PostFilter => "PostFilter",
            Self::Reserve => "Reserve",
            Self::Permit => "Permit",
        }
    }
}

/// How long a part of an attempt has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lap {
    /// The part.
    pub part: Part,
    /// Whether the pod was not refused in it.
    pub is_success: bool,
    /// How long.
    pub took: Duration,
}

/// What was measured since it was read last; nothing without a clock.
#[derive(Clone, Default)]
pub(super) struct Laps {
    clock: Option<SharedClock>,
    since: Moment,
    ended: Vec<Lap>,
}

impl Laps {
    /// Laps that nobody has read: the oldest go.
    const MAX: usize = 64;

    pub(super) fn begin(&mut self) {
        if let Some(clock) = &self.clock {
            self.since = clock.moment();
        }
    }

    /// A part is over, and the next one begins.
    pub(super) fn end(&mut self, part: Part, is_success: bool) {
        let Some(clock) = &self.clock else { return };
        let now = clock.moment();
        if self.ended.len() >= Self::MAX {
            self.ended.remove(0);
        }
        self.ended.push(Lap { part, is_success, took: now.since(self.since) });
        self.since = now;
    }
}

impl Engine {
    /// The same, which measures how long the parts of attempts take.
    #[must_use]
    pub fn timed_by(mut self, clock: SharedClock) -> Self {
        self.laps.clock = Some(clock);
        self
    }

    /// What was measured since this was asked last.
    pub fn take_laps(&mut self) -> impl Iterator<Item = Lap> + '_ {
        self.laps.ended.drain(..)
    }
}
