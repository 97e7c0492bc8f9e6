//! The declared type: one struct is the CRD, the rules, the defaults and both webhooks.

use koord::field::{Errors, Path};
use koord::k8s_openapi::api::{batch::v1::JobTemplateSpec, core::v1::ObjectReference};
use koord::k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use koord::{Mutate, Resource, Schema, Validate};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;

/// Runs a Job at the times of a schedule.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "batch.tutorial.kubebuilder.io", version = "v1", scope = "Namespaced", status, test)]
#[koord(check(names_of_jobs_fit))]
#[koord(admission(
    mutate(path = "/mutate-batch-tutorial-kubebuilder-io-v1-cronjob", name = "mcronjob-v1.kb.io", on = [Create, Update]),
    validate(path = "/validate-batch-tutorial-kubebuilder-io-v1-cronjob", name = "vcronjob-v1.kb.io", on = [Create, Update]),
))]
pub struct CronJob {
    /// Name, namespace, labels.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What runs, and when.
    pub spec: CronJobSpec,
    /// What runs now, and when something ran last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CronJobStatus>,
}

/// What runs, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When Jobs run, in UTC: cron's five fields, a descriptor such as `@daily`, or `@every` with a duration.
    #[koord(min_length = 1, check(is_a_schedule))]
    pub schedule: String,
    /// How late a Job may start; a run that is missed by more is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(minimum = 0)]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when a run is due while a Job is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = "Allow")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
    /// Whether no further Jobs start; those that are active go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(admission(default = false))]
    pub suspend: Option<bool>,
    /// The Job of every run.
    pub job_template: JobTemplateSpec,
    /// How many successful Jobs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(minimum = 0, admission(default = 3))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed Jobs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(minimum = 0, admission(default = 1))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What happens when a run is due while a Job is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub enum ConcurrencyPolicy {
    /// The new Job runs beside it.
    #[default]
    Allow,
    /// The run waits until it has ended.
    Forbid,
    /// It is deleted.
    Replace,
}

/// What runs now, and when something ran last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The Jobs that are active, at most ten of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "atomic", min_items = 1, max_items = 10)]
    pub active: Vec<ObjectReference>,
    /// The time of the latest run that got its Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// `Available`, `Progressing` and `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "map", list_map_key = "type")]
    pub conditions: Vec<Condition>,
}

/// Jobs are named after the CronJob and ten digits, and a label of their pods holds that name.
fn names_of_jobs_fit(cron_job: &CronJob, at: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = cron_job.metadata.name.as_ref().filter(|name| name.len() > 52) {
        errors.invalid(&at.child("metadata").child("name"), name, "must be no more than 52 characters");
    }
}

fn is_a_schedule(schedule: &str, at: &Path<'_>, errors: &mut Errors) {
    if let Err(why) = schedule.parse::<Schedule>() {
        errors.invalid(at, schedule, why);
    }
}
