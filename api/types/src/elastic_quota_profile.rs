//! ElasticQuotaProfile: creates a root quota from the capacity of selected nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use koord_resource::{Resource, Schema, Validate};
use serde::{Deserialize, Serialize};

/// Creates a root quota whose resources are the capacity of the selected nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "quota.koordinator.sh", version = "v1alpha1", scope = "Namespaced", short_name = "eqp")]
#[koord(hardened(category = "koordinator"))]
#[koord(hardened(column(name = "Quota", type = "string", path = ".spec.quotaName")))]
#[koord(hardened(column(name = "Ratio", type = "string", path = ".spec.resourceRatio")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct ElasticQuotaProfile {
    /// Standard object metadata. The label `quota.scheduling.koordinator.sh/tree-id` names the quota tree.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The nodes to select, and the quota to create.
    #[serde(default)]
    pub spec: ElasticQuotaProfileSpec,
    /// Unused.
    #[serde(default)]
    pub status: ElasticQuotaProfileStatus,
}

/// The nodes to select, and the quota to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct ElasticQuotaProfileSpec {
    /// Name of the ElasticQuota to create in the profile's namespace.
    pub quota_name: String,
    /// Labels of the quota.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quota_labels: BTreeMap<String, String>,
    /// The fraction of the nodes' capacity that the quota guarantees, such as `0.9`. Defaults to all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ratio: Option<String>,
    /// Selects the nodes whose capacity is summed up.
    pub node_selector: LabelSelector,
}

/// Unused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ElasticQuotaProfileStatus {}
