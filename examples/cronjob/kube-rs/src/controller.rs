//! The controller.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::batch::v1::Job,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt as _,
        controller::{Action, Controller},
        reflector::{self, Store},
        watcher,
    },
};
use serde_json::json;

use crate::{
    api::{ConcurrencyPolicy, CronJob, CronJobSpec, CronJobStatus},
    jobs::{Jobs, beyond, job},
    schedule::Schedule,
};

const MANAGER: &str = "cronjob";

/// So many active Jobs stand in a status, as its schema says.
const LISTED_MAX: usize = 10;

/// What the reconciler needs.
struct Context {
    client: Client,
    jobs: Store<Job>,
}

/// Why a CronJob cannot be reconciled.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the store of Jobs is gone: {0}")]
    Store(#[from] reflector::store::WriterDropped),
}

/// Runs until a signal ends the process.
pub async fn run(client: Client) {
    let (jobs, writer) = reflector::store();
    let changes = watcher(Api::<Job>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|job: &mut Job| job.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    Controller::new(Api::<CronJob>::all(client.clone()), watcher::Config::default())
        .owns_stream(changes)
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(Context { client, jobs }))
        .for_each(async |result| {
            if let Err(error) = result {
                tracing::warn!("{error}");
            }
        })
        .await;
}

fn error_policy(_: Arc<CronJob>, _: &Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

async fn reconcile(cron_job: Arc<CronJob>, context: Arc<Context>) -> Result<Action, Error> {
    if cron_job.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    context.jobs.wait_until_ready().await?;
    let now = Timestamp::now();
    let spec = &cron_job.spec;
    let jobs = Jobs::of(&cron_job, &context.jobs);
    let recorded = cron_job.status.as_ref().and_then(|status| status.last_schedule_time.as_ref()).map(|time| time.0);
    let last = jobs.latest.max(recorded);
    let created = cron_job.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let due = match spec.suspend {
        Some(true) => Ok(Due::default()),
        _ => due(spec, last.or(created).unwrap_or(now), now),
    };
    let status = CronJobStatus {
        active: jobs.references(LISTED_MAX),
        last_schedule_time: last.map(Time),
        conditions: conditions(&cron_job, &jobs, due.as_ref().err(), now),
    };
    write_status(&context, &cron_job, &status).await?;

    let api = Api::<Job>::namespaced(context.client.clone(), &cron_job.namespace().unwrap_or_default());
    // A Job that is gone is known from the status alone.
    if last == recorded {
        let failed = beyond(jobs.failed, spec.failed_jobs_history_limit);
        for old in failed.into_iter().chain(beyond(jobs.successful, spec.successful_jobs_history_limit)) {
            delete(&api, &old).await?;
        }
    }
    let Due { missed, next } = match due {
        Ok(due) => due,
        Err(Problem { message, .. }) => {
            tracing::warn!("{}: {message}", cron_job.name_any());
            return Ok(Action::await_change());
        }
    };
    if let Some(run) = missed {
        start(&api, &cron_job, &jobs.active, run).await?;
    }
    Ok(next.map_or_else(Action::await_change, |next| Action::requeue(next.duration_since(now).unsigned_abs())))
}

/// Makes the Job of a run, if the policy permits it now.
async fn start(api: &Api<Job>, cron_job: &CronJob, active: &[Arc<Job>], run: Timestamp) -> Result<(), kube::Error> {
    match cron_job.spec.concurrency_policy {
        ConcurrencyPolicy::Forbid if !active.is_empty() => return Ok(()),
        ConcurrencyPolicy::Replace => {
            for replaced in active {
                delete(api, replaced).await?;
            }
        }
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => {}
    }
    match api.create(&PostParams::default(), &job(cron_job, run)).await {
        // The store does not show it yet.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        result => result.map(drop),
    }
}

async fn delete(api: &Api<Job>, job: &Job) -> Result<(), kube::Error> {
    match api.delete(&job.name_any(), &DeleteParams::background()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(drop),
    }
}

async fn write_status(context: &Context, cron_job: &CronJob, status: &CronJobStatus) -> Result<(), kube::Error> {
    if cron_job.status.as_ref() == Some(status) {
        return Ok(());
    }
    let api = Api::<CronJob>::namespaced(context.client.clone(), &cron_job.namespace().unwrap_or_default());
    let object = json!({
        "apiVersion": CronJob::api_version(&()), "kind": CronJob::kind(&()), "status": status,
    });
    let how = PatchParams::apply(MANAGER).force();
    api.patch_status(&cron_job.name_any(), &how, &Patch::Apply(&object)).await?;
    Ok(())
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
fn conditions(cron_job: &CronJob, jobs: &Jobs, problem: Option<&Problem>, now: Timestamp) -> Vec<Condition> {
    let (active, failed) = (jobs.active.len(), jobs.failed.len());
    let degraded = match problem {
        Some(Problem { reason, message }) => (true, *reason, message.clone()),
        None if failed > 0 => (true, "JobsFailed", format!("of the Jobs that are kept, {failed} failed")),
        None => (false, "NoJobsFailed", "of the Jobs that are kept, none failed".to_owned()),
    };
    let available = match cron_job.spec.suspend {
        Some(true) => (false, "Suspended", "spec.suspend is true".to_owned()),
        _ => (!degraded.0, degraded.1, degraded.2.clone()),
    };
    let reason = if active > 0 { "JobsActive" } else { "NoJobsActive" };
    let progressing = (active > 0, reason, format!("{active} Jobs are active"));
    let known = cron_job.status.as_ref().map(|status| &*status.conditions).unwrap_or_default();
    let states = [("Available", available), ("Progressing", progressing), ("Degraded", degraded)];
    let condition = |(type_, (holds, reason, message)): (&str, (bool, &str, String))| {
        let status = if holds { "True" } else { "False" };
        let unchanged = known.iter().find(|known| known.type_ == type_ && known.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: cron_job.metadata.generation,
            last_transition_time: unchanged
                .map_or_else(|| Time(in_seconds(now)), |known| known.last_transition_time.clone()),
        }
    };
    states.map(condition).into()
}

/// The API writes whole seconds.
fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
