//! The controller: a function from a key and the caches to the Jobs that shall be, and to the status.

use std::sync::Arc;

use koord::Projection;
use koord::jiff::{SignedDuration, Timestamp};
use koord::k8s_openapi::api::batch::v1::Job;
use koord::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use koord::runtime::cache::Entry;
use koord::runtime::condition::{self, condition};
use koord::runtime::{
    child::Child, controller::Controller, error::ReconcileError, events::Event, key::ObjectKey, outcome::Outcome,
    store::Store,
};

use crate::api::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus};
use crate::runs::{Jobs, Run, Runs, beyond, job};
use crate::schedule::Schedule;

/// So many active Jobs stand in a status, as its schema says.
const LISTED_MAX: usize = 10;

/// What the cache keeps of a CronJob.
#[derive(PartialEq, Projection)]
#[koord(kind = CronJob)]
pub struct CronJobView {
    creation_timestamp: Option<Timestamp>,
    spec: CronJobSpec,
    status: Option<CronJobStatus>,
}

/// Makes a Job for every run of a schedule, deletes old ones, and keeps the status.
#[koord::controller(name = "cronjob", for(cron_jobs, writes = [status]), owns(jobs))]
pub struct CronJobController {
    cron_jobs: Arc<Store<CronJobView>>,
    jobs: Arc<Store<Child<Job, Run>>>,
}

impl Controller for CronJobController {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let (cron_jobs, jobs) = (self.cron_jobs.read(), self.jobs.read());
        let Some(cron_job) = cron_jobs.get(key.as_str()).filter(|cron_job| !cron_job.deleting) else {
            return Ok(Outcome::settled());
        };
        let CronJobView { creation_timestamp: created, spec, status } = &*cron_job.value;
        let runs = Runs::of(&jobs, &cron_job.uid);
        let recorded = status.as_ref().and_then(|status| status.last_schedule_time.as_ref()).map(|time| time.0);
        let last = runs.latest.max(recorded);
        let due = match spec.suspend {
            Some(true) => Ok(Due::default()),
            _ => due(spec, last.or(*created).unwrap_or(now), now),
        };

        let mut outcome = Outcome::of(key, cron_job);
        let status = CronJobStatus {
            active: runs.references(LISTED_MAX),
            last_schedule_time: last.map(Time),
            conditions: conditions(cron_job, &runs, due.as_ref().err(), now),
        };
        outcome.status(&cron_jobs, key, &status)?;
        // A Job that is gone is known from the status alone.
        if last == recorded {
            let failed = beyond(runs.failed, spec.failed_jobs_history_limit);
            let successful = beyond(runs.successful, spec.successful_jobs_history_limit);
            failed.into_iter().chain(successful).for_each(|old| outcome.absent(&jobs, old));
        }
        match due {
            Err(Problem { reason, message }) => {
                outcome.event(Event::warning((key, cron_job), "Scheduling", reason, message));
            }
            Ok(Due { missed, next }) => {
                if let Some(next) = next {
                    outcome.requeue_after(next.duration_since(now).unsigned_abs());
                }
                if let Some(run) = missed {
                    let active: Vec<&ObjectKey> = runs.active.iter().map(|(key, _)| *key).collect();
                    start(&mut outcome, &jobs, (key, spec), &active, run)?;
                }
            }
        }
        Ok(outcome)
    }
}

/// Declares the Job of a run, if the policy permits it now.
fn start(
    outcome: &mut Outcome,
    jobs: &Jobs,
    (key, spec): (&ObjectKey, &CronJobSpec),
    active: &[&ObjectKey],
    run: Timestamp,
) -> Result<(), ReconcileError> {
    match spec.concurrency_policy.unwrap_or_default() {
        ConcurrencyPolicy::Forbid if !active.is_empty() => return Ok(()),
        ConcurrencyPolicy::Replace => {
            for replaced in active {
                outcome.absent(jobs, replaced);
            }
        }
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => {}
    }
    let name = format!("{}-{}", key.name(), run.as_second());
    outcome.apply(jobs, &ObjectKey::new(key.namespace(), &name), &job(&spec.job_template, run))
}

/// The run that a Job is due for, and the one after it.
#[derive(Default)]
struct Due {
    missed: Option<Timestamp>,
    next: Option<Timestamp>,
}

/// Why it is not known when runs are due.
struct Problem {
    reason: &'static str,
    message: String,
}

fn due(spec: &CronJobSpec, since: Timestamp, now: Timestamp) -> Result<Due, Problem> {
    let problem = |reason| move |message| Problem { reason, message };
    let schedule: Schedule = spec.schedule.parse().map_err(problem("InvalidSchedule"))?;
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let earliest = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
    let missed = schedule.latest(earliest.map_or(since, |earliest| earliest.max(since)), now);
    Ok(Due { missed: missed.map_err(problem("TooManyMissedRuns"))?, next: schedule.next_after(now) })
}

/// The conditions of a CronJob with these Jobs.
fn conditions(
    cron_job: &Entry<CronJobView>,
    runs: &Runs<'_>,
    problem: Option<&Problem>,
    now: Timestamp,
) -> Vec<Condition> {
    let CronJobView { spec, status, .. } = &*cron_job.value;
    let (active, failed) = (runs.active.len(), runs.failed.len());
    let degraded = match problem {
        Some(Problem { reason, message }) => (true, *reason, message.clone()),
        None if failed > 0 => (true, "JobsFailed", format!("of the Jobs that are kept, {failed} failed")),
        None => (false, "NoJobsFailed", "of the Jobs that are kept, none failed".to_owned()),
    };
    let available = match spec.suspend {
        Some(true) => (false, "Suspended", "spec.suspend is true".to_owned()),
        _ => (!degraded.0, degraded.1, degraded.2.clone()),
    };
    let reason = if active > 0 { "JobsActive" } else { "NoJobsActive" };
    let progressing = (active > 0, reason, format!("{active} Jobs are active"));
    let mut conditions = status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    let states = [("Available", available), ("Progressing", progressing), ("Degraded", degraded)];
    for (type_, (holds, reason, message)) in states {
        condition::set(&mut conditions, condition(type_, Some(holds), reason, &message, cron_job.generation), now);
    }
    conditions
}
