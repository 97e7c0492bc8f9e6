//! ElasticQuota: how much the pods of one quota may use together, and how much they are promised.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};

/// A share of the cluster that belongs to a group of pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "scheduling.sigs.k8s.io", version = "v1alpha1", scope = "Namespaced")]
#[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"))]
pub struct ElasticQuota {
    /// Name, labels and annotations; the quota's place in the tree stands in labels.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(default)]
    pub spec: ElasticQuotaSpec,
    /// What is seen.
    #[serde(default)]
    pub status: ElasticQuotaStatus,
}

/// Promise and bound of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ElasticQuotaSpec {
    /// What is promised: pods of the quota get this much even when others want it.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub min: ResourceList,
    /// What can never be exceeded.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub max: ResourceList,
}

/// Use of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ElasticQuotaStatus {
    /// What the pods of the quota request together.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub used: ResourceList,
}
