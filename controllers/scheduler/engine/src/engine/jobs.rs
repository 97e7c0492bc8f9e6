//! Jobs of plugins: pods that are tried together, from the first attempt to the last.

use std::collections::BTreeMap;

use koord_core::clock::Moment;
use koord_scheduler_framework::{Figure, JobMark, Workload, pod::Pod};

use super::Engine;

/// Jobs that have begun, and those that have ended, which are stored until they are taken.
const JOBS_MAX: usize = 1024;

/// Jobs that are under way, and those that have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    began: BTreeMap<String, Moment>,
    begun: Vec<String>,
    ended: Vec<Ended>,
}

/// A job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its name, as [`JobMark`] has it.
    pub job: String,
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
                JobMark::Began(job) => {
                    if self.begun.len() < JOBS_MAX {
                        self.begun.push(job.clone());
                    }
                    self.began.insert(job, now);
                }
                JobMark::Ended { job, pods, reason, is_complete, is_batch } => {
                    let began = self.began.remove(&job).filter(|_| self.ended.len() < JOBS_MAX);
                    self.ended.extend(began.map(|began| Ended { job, began, pods, reason, is_complete, is_batch }));
                }
            }
        }
    }
}

impl Engine {
    /// The jobs that have begun since they were taken last.
    pub fn take_begun_jobs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.jobs.begun)
    }

    /// The jobs that have ended since they were taken last.
    pub fn take_ended_jobs(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.jobs.ended)
    }

    /// The pods that this one is scheduled together with; none where it goes alone.
    pub fn workload(&self, pod: &Pod) -> Option<Workload> {
        let profile = self.profiles.get(self.profile_of(pod)?)?;
        profile.each(|plugin| &plugin.workload).find_map(|point| point.workload(pod, &self.cluster))
    }

    /// What plugins report for metrics, and what was found to be given twice. A plugin of several profiles is asked once.
    pub fn figures(&self) -> Vec<Figure> {
        let plugins: BTreeMap<&str, _> =
            self.profiles.iter().flat_map(|profile| &profile.plugins).map(|plugin| (plugin.name(), plugin)).collect();
        let points = plugins.values().filter_map(|plugin| plugin.metrics.as_ref());
        let of_plugins = points.flat_map(|point| point.figures(&self.cluster));
        of_plugins.chain(self.overallocations.figures()).collect()
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
        let ended = Ended { job: "a".to_owned(), began: at(1), pods, reason, is_complete, is_batch };
        assert_eq!(jobs.ended, [ended], "of b nobody knows the begin");
        assert_eq!(jobs.begun, ["a"]);
    }
}
