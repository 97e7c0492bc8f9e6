//! Jobs of plugins: pods that are tried together, from the first attempt to the last.

use std::collections::BTreeMap;

use koord_core::clock::Moment;

use super::Engine;
use crate::plugin::{Figure, JobMark};

/// Ended jobs that are kept until somebody takes them.
const ENDED_MAX: usize = 1024;

/// Jobs that are under way, and those that have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    began: BTreeMap<String, Moment>,
    ended: Vec<Ended>,
}

/// A job that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When its first pod was tried.
    pub began: Moment,
    /// How many pods were part of it.
    pub pods: usize,
    /// Why it has ended.
    pub reason: &'static str,
    /// Whether its pods have their places.
    pub is_complete: bool,
    /// Whether it was tried as a whole before its first pod was placed.
    pub is_batch: bool,
}

impl Jobs {
    pub(super) fn note(&mut self, marks: Vec<JobMark>, now: Moment) {
        for mark in marks {
            match mark {
                JobMark::Began(job) => _ = self.began.insert(job, now),
                JobMark::Ended { job, pods, reason, is_complete, is_batch } => {
                    let began = self.began.remove(&job).filter(|_| self.ended.len() < ENDED_MAX);
                    self.ended.extend(began.map(|began| Ended { began, pods, reason, is_complete, is_batch }));
                }
            }
        }
    }
}

impl Engine {
    /// The jobs that have ended since they were taken last.
    pub fn take_ended_jobs(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.jobs.ended)
    }

    /// What plugins report for metrics. A plugin of several profiles is asked once.
    pub fn figures(&self) -> Vec<Figure> {
        let plugins: BTreeMap<&str, _> =
            self.profiles.iter().flat_map(|profile| &profile.plugins).map(|plugin| (plugin.name(), plugin)).collect();
        plugins.values().flat_map(|plugin| plugin.figures(&self.cluster)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_job_lasts_from_its_begin_to_its_end() {
        let mut jobs = Jobs::default();
        let at = |second| Moment::at(Duration::from_secs(second));
        let (pods, reason, is_complete, is_batch) = (3, "done", true, false);
        let end = |job: &str| JobMark::Ended { job: job.to_owned(), pods, reason, is_complete, is_batch };
        jobs.note(vec![JobMark::Began("a".to_owned()), end("b")], at(1));
        jobs.note(vec![end("a"), end("a")], at(5));
        let ended = Ended { began: at(1), pods, reason, is_complete, is_batch };
        assert_eq!(jobs.ended, [ended], "of b nobody knows the begin");
    }
}
