//! Recommendation: resource requests for a workload, estimated from its observed usage.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta};
use koord_resource::{Resource, ResourceList, Schema, Time, Validate};
use serde::{Deserialize, Serialize};

use crate::word::words;

/// Recommends resource requests for a workload, estimated from its observed usage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "analysis.koordinator.sh", version = "v1alpha1", scope = "Namespaced", status, short_name = "recom")]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Type", type = "string", path = ".spec.target.type"))]
#[koord(column(name = "Kind", type = "string", path = ".spec.target.workload.kind"))]
#[koord(column(name = "Name", type = "string", path = ".spec.target.workload.name"))]
#[koord(column(name = "LastUpdateTime", type = "date", path = ".status.updateTime"))]
#[koord(hardened(category = "koordinator"))]
pub struct Recommendation {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The workload to analyze.
    #[serde(default)]
    pub spec: RecommendationSpec,
    /// The recommended requests.
    #[serde(default)]
    pub status: RecommendationStatus,
}

/// The workload to analyze.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct RecommendationSpec {
    /// The pods to analyze.
    pub target: RecommendationTarget,
}

/// A workload, or pods selected by labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct RecommendationTarget {
    /// Which field selects the pods: `workload` or `podSelector`.
    #[serde(rename = "type")]
    pub type_: TargetType,
    /// The workload, for type `workload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<CrossVersionObjectReference>,
    /// The label selector of the pods, for type `podSelector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
}

impl Default for TargetType {
    /// The manager of the original leaves it empty.
    fn default() -> Self {
        Self::Other(String::new())
    }
}

words! {
    /// How the pods of a Recommendation are selected.
    pub open enum TargetType {
        /// By a workload.
        Workload = "workload",
        /// By labels of pods.
        PodSelector = "podSelector",
    }
}

/// Refers to an object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct CrossVersionObjectReference {
    /// Kind of the object, such as `Deployment`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// API version of the object, such as `apps/v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
}

/// The recommended requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct RecommendationStatus {
    /// The recommended requests of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_status: Option<RecommendedPodStatus>,
    /// Last time the recommendation was updated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_time: Option<Time>,
    /// The quality of the recommendation: `LowConfidence`, `NoObjectsMatched`, `FetchingHistory`, `ConfigDeprecated`, `ConfigUnsupported`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The recommended requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedPodStatus {
    /// The recommended requests of each container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<RecommendedContainerStatus>,
}

/// The recommended requests of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedContainerStatus {
    /// Name of the container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_name: String,
    /// The recommended requests.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}
