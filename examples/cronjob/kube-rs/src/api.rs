//! The kind.

use k8s_openapi::{
    api::{batch::v1::JobTemplateSpec, core::v1::ObjectReference},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What runs, and when.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "batch.tutorial.kubebuilder.io", version = "v1", kind = "CronJob", namespaced)]
#[kube(status = "CronJobStatus")]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When Jobs run, in UTC: cron's five fields, a descriptor such as `@daily`, or `@every` with a duration.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// How late a Job may start; a run that is missed by more is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when a run is due while a Job is active.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether no further Jobs start; those that are active go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The Job of every run.
    pub job_template: JobTemplateSpec,
    /// How many successful Jobs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many failed Jobs are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What happens when a run is due while a Job is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The Jobs that are active, at most ten of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 10))]
    pub active: Vec<ObjectReference>,
    /// The time of the latest run that got its Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// `Available`, `Progressing` and `Degraded`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
