//! The Jobs of a CronJob: what is read of them, and how one is made.

use std::collections::BTreeMap;

use koord::jiff::Timestamp;
use koord::k8s_openapi::Resource as _;
use koord::k8s_openapi::api::batch::v1::{Job, JobStatus, JobTemplateSpec};
use koord::k8s_openapi::api::core::v1::ObjectReference;
use koord::k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord::runtime::cache::{Cache, Entry};
use koord::runtime::{child::Child, key::ObjectKey, uid::Uid};
use serde::Deserialize;

/// The annotation of a Job with the time of its run.
pub const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// The cache of all Jobs.
pub(crate) type Jobs = Cache<Child<Job, Run>>;

/// A Job and its key in the cache.
type Found<'a> = (&'a ObjectKey, &'a Entry<Child<Job, Run>>);

/// What the controller reads of a Job.
#[derive(PartialEq, Deserialize)]
pub struct Run {
    metadata: RunMetadata,
    #[serde(default)]
    status: JobStatus,
}

#[derive(PartialEq, Deserialize)]
struct RunMetadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Run {
    /// `Complete` or `Failed`; none while the Job is active.
    fn end(&self) -> Option<&str> {
        let mut met = self.status.conditions.iter().flatten().filter(|condition| condition.status == "True");
        met.find_map(|condition| Some(&*condition.type_).filter(|type_| matches!(*type_, "Complete" | "Failed")))
    }

    fn scheduled_at(&self) -> Option<Timestamp> {
        self.metadata.annotations.get(SCHEDULED_AT)?.parse().ok()
    }
}

/// The Jobs of a CronJob, by what has become of them.
#[derive(Default)]
pub(crate) struct Runs<'a> {
    pub(crate) active: Vec<Found<'a>>,
    pub(crate) successful: Vec<Found<'a>>,
    pub(crate) failed: Vec<Found<'a>>,
    /// The time of the latest of them.
    pub(crate) latest: Option<Timestamp>,
}

impl<'a> Runs<'a> {
    /// Those that an object controls.
    pub(crate) fn of(jobs: &'a Jobs, owner: &Uid) -> Self {
        let mut runs = Self::default();
        for key in jobs.index().of(owner) {
            let Some(job) = jobs.get(key.as_str()) else { continue };
            let run = &job.value.seen;
            let alike = match run.end() {
                None => &mut runs.active,
                Some("Complete") => &mut runs.successful,
                Some(_) => &mut runs.failed,
            };
            alike.push((key, job));
            runs.latest = runs.latest.max(run.scheduled_at());
        }
        runs
    }

    /// The active ones as references, at most so many.
    pub(crate) fn references(&self, most: usize) -> Vec<ObjectReference> {
        let reference = |(key, job): &Found<'_>| ObjectReference {
            api_version: Some(Job::API_VERSION.to_owned()),
            kind: Some(Job::KIND.to_owned()),
            namespace: Some(key.namespace().to_owned()),
            name: Some(key.name().to_owned()),
            uid: Some(job.uid.to_string()),
            ..ObjectReference::default()
        };
        self.active.iter().take(most).map(reference).collect()
    }
}

/// Those of finished Jobs that started first, and for which a history has no room.
pub(crate) fn beyond(mut finished: Vec<Found<'_>>, limit: Option<i32>) -> Vec<&ObjectKey> {
    let kept = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or_default());
    let excess = finished.len().saturating_sub(kept);
    finished.sort_by(|(_, a), (_, b)| a.value.seen.status.start_time.cmp(&b.value.seen.status.start_time));
    finished.into_iter().take(excess).map(|(key, _)| key).collect()
}

/// The Job of a run.
pub(crate) fn job(template: &JobTemplateSpec, run: Timestamp) -> Job {
    let ObjectMeta { labels, annotations, .. } = template.metadata.clone().unwrap_or_default();
    let mut annotations = annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_AT.to_owned(), run.to_string());
    Job {
        metadata: ObjectMeta { labels, annotations: Some(annotations), ..ObjectMeta::default() },
        spec: template.spec.clone(),
        ..Job::default()
    }
}
