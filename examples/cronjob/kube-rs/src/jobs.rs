//! The Jobs of a CronJob: what has become of them, and how one is made.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::ObjectReference},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Resource, ResourceExt as _, runtime::reflector::Store};

use crate::api::CronJob;

/// The annotation of a Job with the time of its run.
const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The Jobs of a CronJob, by what has become of them.
#[derive(Default)]
pub struct Jobs {
    /// Those that run.
    pub active: Vec<Arc<Job>>,
    /// Those that have succeeded.
    pub successful: Vec<Arc<Job>>,
    /// Those that have failed.
    pub failed: Vec<Arc<Job>>,
    /// The time of the latest of them.
    pub latest: Option<Timestamp>,
}

impl Jobs {
    /// Those of the store that a CronJob controls.
    pub fn of(cron_job: &CronJob, store: &Store<Job>) -> Self {
        let mut jobs = Self::default();
        let is_owner = |uid: &str| cron_job.metadata.uid.as_deref() == Some(uid);
        let mut owned = store.state_filter(|job| {
            job.owner_references().iter().any(|owner| owner.controller == Some(true) && is_owner(&owner.uid))
        });
        owned.sort_by_key(|job| job.name_any());
        for job in owned {
            jobs.latest = jobs.latest.max(scheduled_at(&job));
            match end(&job) {
                None => jobs.active.push(job),
                Some("Complete") => jobs.successful.push(job),
                Some(_) => jobs.failed.push(job),
            }
        }
        jobs
    }

    /// The active ones as references, at most so many.
    pub fn references(&self, most: usize) -> Vec<ObjectReference> {
        self.active.iter().take(most).map(|job| job.object_ref(&())).map(without_revision).collect()
    }
}

/// A reference that does not change with the Job.
fn without_revision(reference: ObjectReference) -> ObjectReference {
    ObjectReference { resource_version: None, ..reference }
}

/// `Complete` or `Failed`; none while the Job is active.
fn end(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut met = conditions.iter().filter(|condition| condition.status == "True");
    met.find_map(|condition| Some(&*condition.type_).filter(|type_| matches!(*type_, "Complete" | "Failed")))
}

fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// Those of finished Jobs that started first, and for which a history has no room.
pub fn beyond(mut finished: Vec<Arc<Job>>, limit: Option<i32>) -> Vec<Arc<Job>> {
    let kept = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or_default());
    let excess = finished.len().saturating_sub(kept);
    finished.sort_by_key(|job| job.status.as_ref().and_then(|status| status.start_time.clone()));
    finished.truncate(excess);
    finished
}

/// The Job of a run.
pub fn job(cron_job: &CronJob, run: Timestamp) -> Job {
    let template = &cron_job.spec.job_template;
    let ObjectMeta { labels, annotations, .. } = template.metadata.clone().unwrap_or_default();
    let mut annotations = annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), run.to_string());
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", cron_job.name_any(), run.as_second())),
            namespace: cron_job.namespace(),
            labels,
            annotations: Some(annotations),
            owner_references: Some(cron_job.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        ..Job::default()
    }
}
