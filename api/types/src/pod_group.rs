//! PodGroup: gang scheduling of a group of pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, ResourceList, Schema, Time, Validate};
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// A group of pods for gang scheduling: none is bound until the minimum number can be scheduled.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "scheduling.sigs.k8s.io", version = "v1alpha1", scope = "Namespaced")]
#[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"))]
#[koord(hardened(category = "koordinator", short_name = "pg"))]
#[koord(hardened(column(name = "Phase", type = "string", path = ".status.phase")))]
#[koord(hardened(column(name = "MinMember", type = "integer", path = ".spec.minMember")))]
#[koord(hardened(column(name = "Running", type = "integer", path = ".status.running")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct PodGroup {
    /// Standard object metadata. Pods name their group in the label `pod-group.scheduling.sigs.k8s.io`.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The minimum of the group.
    #[serde(default)]
    pub spec: PodGroupSpec,
    /// The progress of the group.
    #[serde(default)]
    pub status: PodGroupStatus,
}

/// The minimum of the group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// The minimum number of pods to schedule together.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub min_member: i32,
    /// The minimum resources to schedule the group; without them none of its pods is scheduled.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub min_resources: ResourceList,
    /// How many seconds scheduled pods wait for the rest of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// The progress of the group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// The phase of the group: `Pending`, `Running`, `PreScheduling`, `Scheduling`, `Scheduled`, `Unknown`, `Finished` or `Failed`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub phase: Option<PodGroupPhase>,
    /// The workload whose pods are in the group, as namespace/name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub occupied_by: String,
    /// Number of scheduled pods.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub scheduled: i32,
    /// Number of running pods.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub running: i32,
    /// Number of succeeded pods.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub succeeded: i32,
    /// Number of failed pods.
    #[serde(default, skip_serializing_if = "word::is_zero")]
    pub failed: i32,
    /// Time at which scheduling of the group started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_start_time: Option<Time>,
}

words! {
    /// Phase of a group of pods.
    pub open enum PodGroupPhase {
        /// Fewer pods than the minimum exist.
        Pending = "Pending",
        /// The minimum number of pods runs.
        Running = "Running",
        /// The minimum number of pods exists.
        PreScheduling = "PreScheduling",
        /// Some pods are scheduled.
        Scheduling = "Scheduling",
        /// The minimum number of pods is scheduled.
        Scheduled = "Scheduled",
        /// The state of some pods is not known.
        Unknown = "Unknown",
        /// The minimum number of pods succeeded.
        Finished = "Finished",
        /// Too many pods failed to reach the minimum.
        Failed = "Failed",
    }
}
