//! Recommendation: what the containers of a workload should request, as learnt from their use.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta, Time};
use koord_resource::{Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};

use crate::word::words;

/// Requests that fit the observed use of a workload.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "analysis.koordinator.sh", version = "v1alpha1", scope = "Namespaced", status, short_name = "recom")]
#[koord(column(name = "Age", type = "date", path = ".metadata.creationTimestamp"))]
#[koord(column(name = "Type", type = "string", path = ".spec.target.type"))]
#[koord(column(name = "Kind", type = "string", path = ".spec.target.workload.kind"))]
#[koord(column(name = "Name", type = "string", path = ".spec.target.workload.name"))]
#[koord(column(name = "LastUpdateTime", type = "date", path = ".status.updateTime"))]
#[koord(hardened(category = "koordinator"))]
pub struct Recommendation {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// For which pods.
    #[serde(default)]
    pub spec: RecommendationSpec,
    /// What was learnt.
    #[serde(default)]
    pub status: RecommendationStatus,
}

/// Whose requests are recommended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct RecommendationSpec {
    /// The pods that are observed.
    pub target: RecommendationTarget,
}

/// A workload, or pods chosen by labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendationTarget {
    /// Whether `workload` or `podSelector` says which pods are meant.
    #[serde(rename = "type")]
    pub type_: TargetType,
    /// The workload, when type is `workload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<CrossVersionObjectReference>,
    /// The pods' labels, when type is `podSelector`.
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
    /// How the target of a recommendation is named.
    pub open enum TargetType {
        /// By a workload.
        Workload = "workload",
        /// By labels of pods.
        PodSelector = "podSelector",
    }
}

/// One object of the same namespace, in whichever version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
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

/// What was learnt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendationStatus {
    /// The recommended requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_status: Option<RecommendedPodStatus>,
    /// When the recommendation was last computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_time: Option<Time>,
    /// How sure it is: `LowConfidence`, `NoObjectsMatched`, `FetchingHistory`, `ConfigDeprecated`, `ConfigUnsupported`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The recommended requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedPodStatus {
    /// One entry per container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<RecommendedContainerStatus>,
}

/// The recommended requests of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct RecommendedContainerStatus {
    /// Name of the container.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container_name: String,
    /// What it should request.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}
