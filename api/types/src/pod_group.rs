//! PodGroup: pods of which a minimum must be scheduled together.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use koord_resource::{Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// Pods of which a minimum must be scheduled together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "scheduling.sigs.k8s.io", version = "v1alpha1", scope = "Namespaced")]
#[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"))]
#[koord(hardened(category = "koordinator", short_name = "pg"))]
#[koord(hardened(column(name = "Phase", type = "string", path = ".status.phase")))]
#[koord(hardened(column(name = "MinMember", type = "integer", path = ".spec.minMember")))]
#[koord(hardened(column(name = "Running", type = "integer", path = ".status.running")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct PodGroup {
    /// Name, labels and annotations. Pods name their group in the label `pod-group.scheduling.sigs.k8s.io`.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How many pods.
    #[serde(default)]
    pub spec: PodGroupSpec,
    /// How far the group got.
    #[serde(default)]
    pub status: PodGroupStatus,
}

/// How many pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// How many pods must be scheduled together.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub min_member: i32,
    /// How much must be free before any of the pods is tried.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub min_resources: ResourceList,
    /// How many seconds the first pods wait for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// How far the group got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// The phase: `Pending`, `Running`, `PreScheduling`, `Scheduling`, `Scheduled`, `Unknown`, `Finished` or `Failed`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<PodGroupPhase>,
    /// The workload whose pods are in the group, as namespace/name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub occupied_by: String,
    /// How many pods have a node.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub scheduled: i32,
    /// How many pods run.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub running: i32,
    /// How many pods ended well.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub succeeded: i32,
    /// How many pods failed.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub failed: i32,
    /// When the first pods of the group were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_start_time: Option<Time>,
}

words! {
    /// Phase of a group of pods.
    pub open enum PodGroupPhase {
        /// Too few pods exist.
        Pending = "Pending",
        /// Enough pods run.
        Running = "Running",
        /// Enough pods exist.
        PreScheduling = "PreScheduling",
        /// Some pods have a node.
        Scheduling = "Scheduling",
        /// Enough pods have a node.
        Scheduled = "Scheduled",
        /// The state of some pods is not known.
        Unknown = "Unknown",
        /// Enough pods ended well.
        Finished = "Finished",
        /// Too many pods failed.
        Failed = "Failed",
    }
}
