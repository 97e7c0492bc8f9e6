//! Which CPUs and NUMA nodes a pod wants and has, and what NodeResourceTopologies say about them.

use koord_resource::ResourceList;
use koord_scheduling::{Cpu, CpuSet, ParseCpuSetError};
use serde::{Deserialize, Serialize};

use crate::{
    node_annotations::NumaTopologyPolicy,
    protocol::{Key, json_texts},
    word::{self, words},
};

/// Annotation of a pod: how its CPUs are bound.
pub const RESOURCE_SPEC: Key<ResourceSpec> = Key::new(
    "scheduling.koordinator.sh/resource-spec",
    r#"a JSON object such as {"preferredCPUBindPolicy":"FullPCPUs"}"#,
);
/// Annotation of a pod: the CPUs and NUMA nodes that it has.
pub const RESOURCE_STATUS: Key<ResourceStatus> =
    Key::new("scheduling.koordinator.sh/resource-status", r#"a JSON object such as {"cpuset":"0-3"}"#);
/// Annotation of a pod: how its resources are kept together.
pub const NUMA_TOPOLOGY_SPEC: Key<NumaTopologySpec> = Key::new(
    "scheduling.koordinator.sh/numa-topology-spec",
    r#"a JSON object such as {"numaTopologyPolicy":"SingleNUMANode"}"#,
);
/// Annotation of a NodeResourceTopology: where each CPU sits.
pub const CPU_TOPOLOGY: Key<CpuTopology> = Key::new(
    "node.koordinator.sh/cpu-topology",
    r#"a JSON object such as {"detail":[{"id":0,"core":0,"socket":0,"node":0}]}"#,
);
/// Annotation of a NodeResourceTopology: pods with CPUs of their own.
pub const POD_CPU_ALLOCS: Key<PodCpuAllocs> = Key::new(
    "node.koordinator.sh/pod-cpu-allocs",
    r#"a JSON list such as [{"namespace":"a","name":"b","cpuset":"0-3"}]"#,
);
/// Annotation of a NodeResourceTopology: CPUs that latency-sensitive pods share.
pub const CPU_SHARED_POOLS: Key<CpuSharedPools> =
    Key::new("node.koordinator.sh/cpu-shared-pools", r#"a JSON list such as [{"socket":0,"node":0,"cpuset":"0-7"}]"#);
/// Annotation of a NodeResourceTopology: CPUs that best-effort pods share.
pub const BE_CPU_SHARED_POOLS: Key<CpuSharedPools> = Key::new(
    "node.koordinator.sh/be-cpu-shared-pools",
    r#"a JSON list such as [{"socket":0,"node":0,"cpuset":"0-7"}]"#,
);
/// Annotation of a NodeResourceTopology: how the kubelet hands out CPUs.
pub const KUBELET_CPU_MANAGER_POLICY: Key<KubeletCpuManagerPolicy> =
    Key::new("kubelet.koordinator.sh/cpu-manager-policy", r#"a JSON object such as {"policy":"static"}"#);

/// How the CPUs of a pod are bound. Nothing said is nothing wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSpec {
    /// How they must be bound.
    #[serde(rename = "requiredCPUBindPolicy", skip_serializing_if = "word::is_unset")]
    pub required_cpu_bind_policy: Option<CpuBindPolicy>,
    /// How they should be bound.
    #[serde(rename = "preferredCPUBindPolicy", skip_serializing_if = "word::is_unset")]
    pub preferred_cpu_bind_policy: Option<CpuBindPolicy>,
    /// What should not be shared with other pods that say the same.
    #[serde(rename = "preferredCPUExclusivePolicy", skip_serializing_if = "word::is_unset")]
    pub preferred_cpu_exclusive_policy: Option<CpuExclusivePolicy>,
}

words! {
    /// How the CPUs of a pod are bound.
    pub open enum CpuBindPolicy {
        /// As the scheduler is configured.
        Default = "Default",
        /// To whole cores.
        FullPcpus = "FullPCPUs",
        /// To one CPU per core.
        SpreadByPcpus = "SpreadByPCPUs",
        /// To CPUs of its own, and to more while others leave them.
        ConstrainedBurst = "ConstrainedBurst",
    }
}

words! {
    /// What should not be shared with other pods.
    pub open enum CpuExclusivePolicy {
        /// Everything may be shared.
        None = "None",
        /// Cores.
        PcpuLevel = "PCPULevel",
        /// NUMA nodes.
        NumaNodeLevel = "NUMANodeLevel",
    }
}

/// The CPUs and NUMA nodes that a pod has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    /// The CPUs, such as `0-3`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpuset: String,
    /// What it has of each NUMA node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numa_node_resources: Vec<NumaNodeResource>,
}

impl ResourceStatus {
    /// The CPUs as a set.
    pub fn cpus(&self) -> Result<CpuSet, ParseCpuSetError> {
        self.cpuset.parse()
    }
}

/// What a pod has of one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNodeResource {
    /// Number of the NUMA node.
    pub node: i32,
    /// Amounts.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}

/// How the resources of a pod are kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NumaTopologySpec {
    /// How strictly.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub numa_topology_policy: Option<NumaTopologyPolicy>,
    /// Whether pods on one NUMA node keep apart from pods on several.
    #[serde(rename = "singleNUMANodeExclusive", skip_serializing_if = "word::is_unset")]
    pub single_numa_node_exclusive: Option<NumaNodeExclusive>,
}

words! {
    /// Whether pods on one NUMA node keep apart from pods on several.
    pub open enum NumaNodeExclusive {
        /// As far as possible.
        Preferred = "Preferred",
        /// They must.
        Required = "Required",
    }
}

/// Where each CPU sits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuTopology {
    /// One entry per CPU.
    pub detail: Vec<CpuInfo>,
}

/// Where one CPU sits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuInfo {
    /// Number of the CPU.
    pub id: i32,
    /// Number of its core.
    pub core: i32,
    /// Number of its socket.
    pub socket: i32,
    /// Number of its NUMA node.
    pub node: i32,
}

impl CpuTopology {
    /// The CPUs by their place. Entries with negative numbers are left out. Numbers of cores are made unique by the socket (spec/scheduler.md 3B).
    pub fn by_place(&self) -> koord_scheduling::CpuTopology {
        let place = |cpu: &CpuInfo| {
            let [id, core, socket, node] =
                [cpu.id, cpu.core, cpu.socket, cpu.node].map(|number| u32::try_from(number).ok());
            let (id, core, socket, node) = (id?, core?, socket?, node?);
            Some(Cpu { id, core: (socket << 16) | core, node, socket })
        };
        self.detail.iter().filter_map(place).collect()
    }
}

/// Pods with CPUs of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodCpuAllocs(pub Vec<PodCpuAlloc>);

/// A pod with CPUs of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodCpuAlloc {
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// UID of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The CPUs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpuset: String,
    /// Whether the kubelet gave them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub managed_by_kubelet: bool,
}

/// CPUs that pods share, by socket and NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuSharedPools(pub Vec<CpuSharedPool>);

/// CPUs of one NUMA node that pods share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuSharedPool {
    /// Number of the socket.
    pub socket: i32,
    /// Number of the NUMA node.
    pub node: i32,
    /// The CPUs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpuset: String,
}

/// How the kubelet hands out CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletCpuManagerPolicy {
    /// Its policy: `none` or `static`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Options of the policy.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub options: std::collections::BTreeMap<String, String>,
    /// CPUs that no pod gets.
    #[serde(rename = "reservedCPUs", skip_serializing_if = "String::is_empty")]
    pub reserved_cpus: String,
}

json_texts!(
    ResourceSpec,
    ResourceStatus,
    NumaTopologySpec,
    CpuTopology,
    PodCpuAllocs,
    CpuSharedPools,
    KubeletCpuManagerPolicy,
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text, written};

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&RESOURCE_SPEC);
        reads_any_text(&RESOURCE_STATUS);
        reads_any_text(&NUMA_TOPOLOGY_SPEC);
        reads_any_text(&CPU_TOPOLOGY);
        reads_any_text(&POD_CPU_ALLOCS);
        reads_any_text(&CPU_SHARED_POOLS);
        reads_any_text(&BE_CPU_SHARED_POOLS);
        reads_any_text(&KUBELET_CPU_MANAGER_POLICY);
    }

    #[test]
    fn values_survive() {
        let cpus = (any::<i32>(), any::<i32>(), any::<i32>(), any::<i32>());
        let cpus = cpus.prop_map(|(id, core, socket, node)| CpuInfo { id, core, socket, node });
        keeps_values(&CPU_TOPOLOGY, proptest::collection::vec(cpus, 0..4).prop_map(|detail| CpuTopology { detail }));
    }

    #[test]
    fn what_a_pod_has_is_written_shortly() {
        let status = ResourceStatus { cpuset: "0-3".to_owned(), ..ResourceStatus::default() };
        assert_eq!(written(&RESOURCE_STATUS, &status), r#"{"cpuset":"0-3"}"#);
        assert_eq!(status.cpus().unwrap().len(), 4);
        let text = r#"{"numaNodeResources":[{"node":0,"resources":{"cpu":"2"}}]}"#;
        assert_eq!(written(&RESOURCE_STATUS, &read(&RESOURCE_STATUS, text).unwrap()), text);
    }
}
