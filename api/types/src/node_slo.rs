//! NodeSLO: the QoS strategies that koordlet enforces on one node. The object has the node's name.

mod cpu_burst;
mod host_application;
mod ordered;
mod qos;
mod system;
mod threshold;

pub use cpu_burst::{CpuBurstPolicy, CpuBurstStrategy};
pub use host_application::{CgroupBase, CgroupPath, HostApplicationSpec, HostApplicationStrategy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Mutate, Resource, Schema, Validate};
pub use ordered::Ordered;
pub use qos::{
    BlkIoQosCfg, BlockCfg, BlockType, CpuPolicy, CpuQosCfg, IoCfg, MemoryQosCfg, NetQosPolicy, NetworkQosCfg,
    ResctrlQosCfg, ResourceQos, ResourceQosPolicies, ResourceQosStrategy,
};
use serde::{Deserialize, Serialize};
pub use system::SystemStrategy;
pub use threshold::{CpuEvictPolicy, CpuSuppressPolicy, ResourceThresholdStrategy};

use crate::extensions::Extensions;

/// The QoS strategies that koordlet enforces on one node. koord-manager derives them from `slo-controller-config`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "slo.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator"))]
#[koord(admission(validate(
    path = "/validate-slo-koordinator-sh-v1alpha1-nodeslo",
    name = "vnodeslo.koordinator.sh",
    on = [Create, Update],
    gate = "DeclaredWebhooks",
    warns = "koordinator-manager"
)))]
#[koord(hardened(column(name = "Suppress", type = "boolean", path = ".spec.resourceUsedThresholdWithBE.enable")))]
#[koord(hardened(column(name = "Burst", type = "string", path = ".spec.cpuBurstStrategy.policy")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct NodeSLO {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// The strategies.
    #[serde(default)]
    pub spec: NodeSLOSpec,
    /// Unused.
    #[serde(default)]
    pub status: NodeSLOStatus,
}

/// The strategies that koordlet enforces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct NodeSLOSpec {
    /// Thresholds of node usage at which BE pods are suppressed or evicted.
    #[serde(rename = "resourceUsedThresholdWithBE", default, skip_serializing_if = "Option::is_none")]
    pub resource_used_threshold_with_be: Option<ResourceThresholdStrategy>,
    /// Resource isolation of each QoS class.
    #[serde(rename = "resourceQOSStrategy", default, skip_serializing_if = "Option::is_none")]
    pub resource_qos_strategy: Option<ResourceQosStrategy>,
    /// When containers may burst above their CPU limit.
    #[serde(rename = "cpuBurstStrategy", default, skip_serializing_if = "Option::is_none")]
    pub cpu_burst_strategy: Option<CpuBurstStrategy>,
    /// System parameters of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_strategy: Option<SystemStrategy>,
    /// Third-party strategies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
    /// Applications that run outside of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_applications: Vec<HostApplicationSpec>,
}

/// Unused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct NodeSLOStatus {}
