//! ElasticQuota: the guaranteed and the maximum resources of a group of pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, ResourceList, Schema, Validate};
use serde::{Deserialize, Serialize};

/// Limits the resources of a group of pods, and guarantees a part of them. Quotas form a tree: a child shares the resources
/// of its parent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "scheduling.sigs.k8s.io", version = "v1alpha1", scope = "Namespaced")]
#[koord(admission(
    mutate(
        path = "/mutate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
        name = "melasticquota.koordinator.sh",
        on = [Create],
        gate = "ElasticMutatingWebhook",
        failure_policy = Fail,
        snapshot
    ),
    validate(
        path = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota",
        name = "velasticquota.koordinator.sh",
        on = [Create, Update, Delete],
        gate = "ElasticValidatingWebhook",
        failure_policy = Fail,
        code = 400,
        snapshot
    )
))]
#[koord(annotation("api-approved.kubernetes.io", "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"))]
pub struct ElasticQuota {
    /// Standard object metadata. Labels name the parent quota and the tree.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The guaranteed and the maximum resources.
    #[serde(default)]
    pub spec: ElasticQuotaSpec,
    /// The observed usage.
    #[serde(default)]
    pub status: ElasticQuotaStatus,
}

/// The guaranteed and the maximum resources of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ElasticQuotaSpec {
    /// The guaranteed resources: pods of the quota may use these even under contention.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub min: ResourceList,
    /// The maximum resources: pods of the quota may never use more.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub max: ResourceList,
}

/// The observed usage of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ElasticQuotaStatus {
    /// The resources requested by the pods of the quota.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub used: ResourceList,
}
