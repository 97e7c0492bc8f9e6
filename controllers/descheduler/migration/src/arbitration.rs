//! Arbitration: which jobs may start. It is a function of the snapshot; no rule of it depends on the time.

mod order;

use std::{collections::BTreeSet, sync::Arc};

use koord_core::uid::Uid;
use koord_descheduler_framework::{Cluster, Pod, PodId, ReasonCode, Refusal};

use self::order::in_order;
use crate::{filter::Checks, jobs::MigrationJob, plugin::MigrationController};

/// What becomes of a job that waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It may start: it gets the annotation `descheduler.koordinator.sh/passed-arbitration`, and counts for the limits from now on.
    Pass,
    /// Its pod may not migrate, and that will not change: it fails with the reason `ForbiddenMigratePod`.
    Fail(Refusal),
    /// It waits on. Nothing is written.
    Stay(Refusal),
}

/// A job, and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arbitrated<'a> {
    pub job: &'a MigrationJob,
    pub decision: Decision,
}

/// A job that waits, and its pod if that exists.
#[derive(Clone, Copy, Debug)]
struct Waiting<'a> {
    job: &'a MigrationJob,
    pod: Option<(PodId, &'a Arc<Pod>)>,
}

/// Whether a job has passed arbitration: by its annotation, or by a decision of this process that the snapshot may not show yet (`passed`). A job may be
/// started when it has. Other changes of a job do not let it start.
pub fn has_passed(job: &MigrationJob, passed: &BTreeSet<Uid>) -> bool {
    job.has_passed_arbitration || passed.contains(&job.uid)
}

/// Whether a job waits for arbitration. A job that was deleted or has ended waits for nothing. One that runs without having passed does: so it was made.
pub fn is_waiting(job: &MigrationJob, passed: &BTreeSet<Uid>) -> bool {
    job.is_live() && !job.is_deleting && !has_passed(job, passed)
}

/// The message of a job that fails because its pod may not migrate.
pub fn forbidden_message(job: &MigrationJob) -> String {
    let pod = job.pod.as_ref().map_or("", |pod| pod.as_str());
    format!("Pod {pod:?} is forbidden to migrate because it does not meet the requirements")
}

impl MigrationController {
    /// Decides about all jobs of the snapshot that wait, in the order in which they may start. `passed` are the jobs that have passed in this process and
    /// are not seen to have their annotation yet. The caller adds those that pass now, and forgets those that are gone.
    pub fn arbitrate<'a>(&'a self, cluster: &'a Cluster, passed: &BTreeSet<Uid>) -> Vec<Arbitrated<'a>> {
        let counts = |job: &&MigrationJob| job.is_running() || (job.is_pending() && has_passed(job, passed));
        let waiting: Vec<Waiting<'a>> = MigrationJob::all(cluster)
            .filter(|job| is_waiting(job, passed))
            .map(|job| Waiting { job, pod: job.pod_in(cluster) })
            .collect();
        if waiting.is_empty() {
            return Vec::new();
        }
        let waiting = in_order(waiting, cluster, MigrationJob::all(cluster).filter(counts));
        let mut checks = Checks::new(&self.rules, &self.limits, cluster, MigrationJob::all(cluster).filter(counts));
        waiting
            .into_iter()
            .map(|waiting| Arbitrated { job: waiting.job, decision: decide(&mut checks, waiting) })
            .collect()
    }
}

fn decide(checks: &mut Checks<'_>, Waiting { job, pod }: Waiting<'_>) -> Decision {
    if job.is_paused {
        return Decision::Stay(ReasonCode::JobPaused.into());
    }
    // Once it is reconciled, a job without pod fails.
    let Some((id, pod)) = pod else { return Decision::Pass };
    match checks.check_lasting(id, pod) {
        Ok(()) => {}
        Err(refusal) if refusal.code == ReasonCode::WorkloadNotLookedUp => return Decision::Stay(refusal),
        Err(refusal) => return Decision::Fail(refusal),
    }
    match checks.check_limits(id, pod) {
        Ok(()) => {
            // A job that is running already counts.
            if !job.is_running() {
                checks.add(id);
            }
            Decision::Pass
        }
        Err(refusal) => Decision::Stay(refusal),
    }
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
