//! ElasticQuotaProfile: a quota tree that follows the capacity of some nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use koord_resource::{Resource, Schema};
use serde::{Deserialize, Serialize};

/// A root quota that is as large as the nodes that it selects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "quota.koordinator.sh", version = "v1alpha1", scope = "Namespaced", short_name = "eqp")]
#[koord(hardened(category = "koordinator"))]
#[koord(hardened(column(name = "Quota", type = "string", path = ".spec.quotaName")))]
#[koord(hardened(column(name = "Ratio", type = "string", path = ".spec.resourceRatio")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ElasticQuotaProfile {
    /// Name, labels and annotations; the label `quota.scheduling.koordinator.sh/tree-id` names the tree.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which nodes, and which quota.
    #[serde(default)]
    pub spec: ElasticQuotaProfileSpec,
    /// Nothing yet.
    #[serde(default)]
    pub status: ElasticQuotaProfileStatus,
}

/// Which nodes, and which quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticQuotaProfileSpec {
    /// Name of the ElasticQuota that is made in the namespace of the profile.
    pub quota_name: String,
    /// Labels that the quota gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota_labels: BTreeMap<String, String>,
    /// The share of the nodes' capacity that the quota promises, as a fraction in text form, such as `0.9`; absent for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ratio: Option<String>,
    /// Labels of the nodes whose capacity counts.
    pub node_selector: LabelSelector,
}

/// Nothing yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ElasticQuotaProfileStatus {}
