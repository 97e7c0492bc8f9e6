//! Arguments of DeviceShare.

use koord_configuration::Configuration;
use serde::{Deserialize, Serialize};

use super::ScoringStrategy;
use crate::Args;

/// Arguments of DeviceShare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete)]
pub struct DeviceShareArgs {
    /// Deprecated.
    #[koord(no_effect = "there is one allocator")]
    pub allocator: String,
    /// How nodes are scored: over GPU memory, RDMA and FPGAs where no resource is named.
    #[koord(default = {"resources": [
        {"name": "koordinator.sh/gpu-memory-ratio", "weight": 1},
        {"name": "koordinator.sh/gpu-memory", "weight": 1},
        {"name": "koordinator.sh/rdma", "weight": 1},
        {"name": "koordinator.sh/fpga", "weight": 1},
    ]})]
    pub scoring_strategy: ScoringStrategy,
    /// Whether devices may lie on other NUMA nodes than CPUs.
    #[serde(rename = "disableDeviceNUMATopologyAlignment")]
    pub disable_device_numa_topology_alignment: bool,
    /// The templates by which GPUs are shared.
    #[serde(rename = "gpuSharedResourceTemplatesConfig")]
    pub gpu_shared_resource_templates: SharedResourceTemplates,
    /// Models of GPUs that cannot be shared.
    pub gpu_share_unsupported_models: Vec<GpuModel>,
}

/// The templates by which GPUs are shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharedResourceTemplates {
    /// The namespace of the ConfigMap.
    #[koord(default = "koordinator-system", zero_is_unset)]
    pub config_map_namespace: String,
    /// The name of the ConfigMap.
    #[koord(default = "gpu-shared-resource-templates", zero_is_unset)]
    pub config_map_name: String,
    /// Pods that request one of these resources get a template.
    #[koord(default = ["huawei.com/npu-core"], zero_is_unset)]
    pub matched_resources: Vec<String>,
}

/// A model of GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct GpuModel {
    /// The vendor.
    pub vendor: String,
    /// The model.
    pub model: String,
}

impl Args for DeviceShareArgs {
    const PLUGIN: &'static str = "DeviceShare";
}

impl DeviceShareArgs {
    fn complete(&mut self) {
        self.scoring_strategy.name_resources(Self::default().scoring_strategy);
    }
}
