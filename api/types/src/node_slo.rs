//! NodeSLO: how koordlet shares one node between latency-sensitive and best-effort pods. The object has the node's name.

mod cpu_burst;
mod host_application;
mod qos;
mod system;
mod threshold;

pub use cpu_burst::{CpuBurstPolicy, CpuBurstStrategy};
pub use host_application::{CgroupBase, CgroupPath, HostApplicationSpec, HostApplicationStrategy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Resource, Schema};
pub use qos::{
    BlkIoQosCfg, BlockCfg, BlockType, CpuPolicy, CpuQosCfg, IoCfg, MemoryQosCfg, NetQosPolicy, NetworkQosCfg,
    ResctrlQosCfg, ResourceQos, ResourceQosPolicies, ResourceQosStrategy,
};
use serde::{Deserialize, Serialize};
pub use system::SystemStrategy;
pub use threshold::{CpuEvictPolicy, CpuSuppressPolicy, ResourceThresholdStrategy};

use crate::extensions::Extensions;

/// How koordlet shares one node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "slo.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator"))]
#[koord(hardened(column(name = "Suppress", type = "boolean", path = ".spec.resourceUsedThresholdWithBE.enable")))]
#[koord(hardened(column(name = "Burst", type = "string", path = ".spec.cpuBurstStrategy.policy")))]
#[koord(hardened(column(name = "Age", type = "date", path = ".metadata.creationTimestamp")))]
pub struct NodeSLO {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What koordlet does.
    #[serde(default)]
    pub spec: NodeSLOSpec,
    /// Nothing yet.
    #[serde(default)]
    pub status: NodeSLOStatus,
}

/// What koordlet does. The manager writes it from the ConfigMap `slo-controller-config`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSLOSpec {
    /// When best-effort pods get fewer CPUs, and when they are evicted.
    #[serde(rename = "resourceUsedThresholdWithBE", default, skip_serializing_if = "Option::is_none")]
    pub resource_used_threshold_with_be: Option<ResourceThresholdStrategy>,
    /// What each QoS class gets.
    #[serde(rename = "resourceQOSStrategy", default, skip_serializing_if = "Option::is_none")]
    pub resource_qos_strategy: Option<ResourceQosStrategy>,
    /// When containers may use more CPU than their limit.
    #[serde(rename = "cpuBurstStrategy", default, skip_serializing_if = "Option::is_none")]
    pub cpu_burst_strategy: Option<CpuBurstStrategy>,
    /// Settings of the whole node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_strategy: Option<SystemStrategy>,
    /// Strategies of third parties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
    /// Applications outside pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_applications: Vec<HostApplicationSpec>,
}

/// Nothing yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct NodeSLOStatus {}
