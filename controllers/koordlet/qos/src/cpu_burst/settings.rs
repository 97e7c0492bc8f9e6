//! How a pod may burst: the node's settings with the pod's annotation over them.

use koord_koordlet_framework::Pod;
use koord_resource::{Schema, declare::Emit, go_json};
use koord_types::{
    node_slo::{CpuBurstPolicy, CpuBurstStrategy},
    pod_annotations::CPU_BURST,
    protocol::ProtocolError,
};

/// How a pod may burst.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Settings {
    pub strategy: CpuBurstStrategy,
    /// Whether the pod's annotation changes them.
    pub is_own: bool,
}

impl Settings {
    /// Those of the node, overlaid by the pod's annotation.
    pub(super) fn of(pod: &Pod, node: &CpuBurstStrategy) -> Result<Self, ProtocolError> {
        let Some(own) = CPU_BURST.get(&pod.annotations)? else {
            return Ok(Self { strategy: node.clone(), is_own: false });
        };
        let merged = go_json::merge(node, &own, &CpuBurstStrategy::schema(Emit::default()));
        Ok(Self { strategy: merged.unwrap_or(own), is_own: true })
    }

    /// Whether containers may save CPU time.
    pub(super) fn bursts(&self) -> bool {
        matches!(self.strategy.policy, Some(CpuBurstPolicy::Auto | CpuBurstPolicy::CpuBurstOnly))
    }

    /// Whether quotas grow.
    pub(super) fn scales_quota(&self) -> bool {
        matches!(self.strategy.policy, Some(CpuBurstPolicy::Auto | CpuBurstPolicy::CfsQuotaBurstOnly))
    }
}
