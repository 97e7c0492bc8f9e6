//! Evictions that were refused: which pods are left alone for a while, and what is expected of the next ones.
//!
//! A plan assumes what becomes of its steps, and is computed again where it was wrong. A PodDisruptionBudget refuses the pods of a workload one after the
//! other, and an API server that is not well refuses all of them: who expected each to succeed would compute as many plans as pods are refused. What
//! is expected decides about that alone, and never about which pods are evicted.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use koord_descheduler_framework::Expected;
use koord_runtime::{clock::Moment, uid::Uid};

/// The first pause after an eviction failed, and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(10);
/// After so many refusals in a row no eviction is expected to succeed.
const IN_A_ROW: usize = 8;
/// The controllers that are remembered. Beyond, none is.
const CONTROLLERS_MAX: usize = 10_000;

/// What was refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Pods whose eviction failed: until when they are not tried, and the pause after the next failure.
    pods: BTreeMap<Uid, (Moment, Duration)>,
    /// The controllers of which a pod was refused last.
    controllers: BTreeSet<Uid>,
    /// How many evictions were refused since the last one that was not.
    in_a_row: usize,
}

impl Refusals {
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Whether a pod is not tried now.
    pub(crate) fn holds(&self, pod: &Uid, now: Moment) -> bool {
        self.pods.get(pod).is_some_and(|(until, _)| *until > now)
    }

    /// Pods that have not been refused for a while are forgotten, and with the last of them what was expected. They are remembered for longer than from one
    /// pass to the next, or pauses would not grow.
    pub(crate) fn forget(&mut self, now: Moment) {
        self.pods.retain(|_, (until, _)| *until + PAUSE_MAX > now);
        if self.pods.is_empty() {
            self.controllers.clear();
            self.in_a_row = 0;
        }
    }

    /// The eviction of a pod failed: it is left alone for a while, for longer after each failure.
    pub(crate) fn failed(&mut self, pod: &Uid, now: Moment) {
        let pause = self.pods.get(pod).map_or(PAUSE_MIN, |(_, pause)| *pause);
        self.pods.insert(pod.clone(), (now + pause, (pause * 2).min(PAUSE_MAX)));
    }

    /// The eviction of a pod of this controller has ended.
    pub(crate) fn ended(&mut self, controller: Option<Uid>, is_done: bool) {
        if is_done {
            if self.in_a_row >= IN_A_ROW {
                // It was the API server, and not their budgets.
                self.controllers.clear();
            }
            self.in_a_row = 0;
            controller.map(|controller| self.controllers.remove(&controller));
        } else {
            self.in_a_row += 1;
            self.controllers.extend(controller.filter(|_| self.controllers.len() < CONTROLLERS_MAX));
        }
    }

    /// What is expected of evictions.
    pub(crate) fn expected(&self) -> Expected<'_> {
        match (self.in_a_row, self.controllers.is_empty()) {
            (IN_A_ROW.., _) => Expected::NoEvictions,
            (_, true) => Expected::Success,
            (_, false) => Expected::Refused(&self.controllers),
        }
    }
}
