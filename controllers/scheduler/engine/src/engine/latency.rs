//! How long the parts of attempts take, by a clock that is given, and in some of them single plugins.

use std::time::Duration;

use koord_core::clock::{Moment, SharedClock};
use koord_scheduler_framework::{
    Registration,
    timing::{CallResult, ExtensionPoint, PluginLatency, Stopwatch, Timing},
};

use super::Engine;

/// A part of an attempt, under the name that the scheduling framework has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptPart {
    /// The search for a node, from PreFilter to Score: what is known from before is repaired, so that there is no time of each.
    Filter,
    /// PostFilter, such as preemption.
    PostFilter,
    /// What the pod is given on its node.
    Reserve,
    /// Whether it is bound at once.
    Permit,
}

impl AttemptPart {
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
pub struct PartLatency {
    pub part: AttemptPart,
    /// Whether the pod was not refused in it.
    pub is_success: bool,
    /// How long.
    pub took: Duration,
}

/// What was measured since it was read last; nothing without a clock.
#[derive(Clone, Default)]
pub(super) struct Latencies {
    clock: Option<SharedClock>,
    since: Moment,
    ended: Vec<PartLatency>,
    /// Attempts that have begun after the last one that was sampled.
    attempts: u32,
    /// Whether plugins are timed: only with a clock.
    is_sampled: bool,
    of_plugins: Vec<PluginLatency>,
}

impl Latencies {
    /// How many latencies are kept unread: the oldest go.
    const MAX: usize = 64;
    /// Of so many attempts plugins are timed in the last one. They are counted, not drawn: what is drawn decides between equal nodes.
    const PER_SAMPLE: u32 = 10;

    pub(super) fn begin(&mut self) {
        if let Some(clock) = &self.clock {
            self.since = clock.moment();
            self.attempts += 1;
            self.is_sampled = self.attempts == Self::PER_SAMPLE;
            if self.is_sampled {
                self.attempts = 0;
                self.of_plugins.clear();
            }
        }
    }

    /// The attempt is over.
    pub(super) fn finish(&mut self) {
        self.is_sampled = false;
    }

    /// What times plugins in this attempt; none where it is not sampled.
    pub(super) fn stopwatch(&mut self) -> Option<Stopwatch<'_>> {
        if !self.is_sampled {
            return None;
        }
        let clock = self.clock.as_deref()?;
        Some(Stopwatch::new(clock, &mut self.of_plugins))
    }

    /// Calls a plugin, with a look at the clock where the attempt is sampled.
    pub(super) fn call<R: CallResult>(
        &mut self,
        plugin: &Registration,
        point: ExtensionPoint,
        call: impl FnOnce() -> R,
    ) -> R {
        match self.stopwatch() {
            Some(mut stopwatch) => stopwatch.call(plugin, point, call),
            None => call(),
        }
    }

    /// A part is over, and the next one begins.
    pub(super) fn end(&mut self, part: AttemptPart, is_success: bool) {
        let Some(clock) = &self.clock else { return };
        let now = clock.moment();
        if self.ended.len() >= Self::MAX {
            self.ended.remove(0);
        }
        self.ended.push(PartLatency { part, is_success, took: now.since(self.since) });
        self.since = now;
    }
}

impl Engine {
    /// The same, which measures how long the parts of attempts take.
    #[must_use]
    pub fn timed_by(mut self, clock: SharedClock) -> Self {
        self.latencies.clock = Some(clock);
        self
    }

    /// What was measured since this was asked last.
    pub fn take_latencies(&mut self) -> impl Iterator<Item = PartLatency> + '_ {
        self.latencies.ended.drain(..)
    }

    /// How long plugins took in the last attempt that was sampled, in the order of their calls, unless that was read before:
    /// every tenth attempt is sampled.
    pub fn take_plugin_latencies(&mut self) -> impl Iterator<Item = PluginLatency> + '_ {
        self.latencies.of_plugins.drain(..)
    }
}
