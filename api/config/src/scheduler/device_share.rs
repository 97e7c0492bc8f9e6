//! Arguments of DeviceShare.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ScoringStrategy;
use crate::Args;

/// Arguments of DeviceShare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeviceShareArgs {
    /// Deprecated, without an effect.
    pub allocator: String,
    /// How nodes are scored. Default LeastAllocated over GPU memory, RDMA and FPGAs.
    pub scoring_strategy: Option<ScoringStrategy>,
    /// Whether devices may lie on other NUMA nodes than CPUs. Default false.
    #[serde(rename = "disableDeviceNUMATopologyAlignment")]
    pub disable_device_numa_topology_alignment: bool,
    /// The templates by which GPUs are shared.
    #[serde(rename = "gpuSharedResourceTemplatesConfig")]
    pub gpu_shared_resource_templates: Option<SharedResourceTemplates>,
    /// Models of GPUs that cannot be shared.
    pub gpu_share_unsupported_models: Vec<GpuModel>,
}

/// The templates by which GPUs are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SharedResourceTemplates {
    /// The namespace of the ConfigMap. Default koordinator-system.
    pub config_map_namespace: String,
    /// The name of the ConfigMap. Default gpu-shared-resource-templates.
    pub config_map_name: String,
    /// Pods that request one of these resources get a template. Default huawei.com/npu-core.
    pub matched_resources: Vec<String>,
}

/// A model of GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GpuModel {
    /// The vendor.
    pub vendor: String,
    /// The model.
    pub model: String,
}

impl Args for DeviceShareArgs {
    const PLUGIN: &'static str = "DeviceShare";

    fn complete(&mut self) {
        const SCORED: [&str; 4] = [
            "koordinator.sh/gpu-memory-ratio",
            "koordinator.sh/gpu-memory",
            "koordinator.sh/rdma",
            "koordinator.sh/fpga",
        ];
        self.scoring_strategy.get_or_insert_default().complete(&SCORED);
        let templates = self.gpu_shared_resource_templates.get_or_insert_default();
        if templates.config_map_namespace.is_empty() {
            "koordinator-system".clone_into(&mut templates.config_map_namespace);
        }
        if templates.config_map_name.is_empty() {
            "gpu-shared-resource-templates".clone_into(&mut templates.config_map_name);
        }
        if templates.matched_resources.is_empty() {
            templates.matched_resources.push("huawei.com/npu-core".to_owned());
        }
    }
}
