//! The CPUs of the node, and who may use them: what the NodeResourceTopology says.

use koord_scheduling::{CpuSet, CpuTopology};

/// The CPUs of the node and their pools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeTopology {
    pub cpus: CpuTopology,
    /// CPUs of LS pods: those that no pod has for itself.
    pub shared_pools: Vec<CpuPool>,
    /// CPUs of BE pods: those that no LSE pod has.
    pub be_shared_pools: Vec<CpuPool>,
    /// Whether the kubelet gives CPUs to pods (CPU manager policy `static`).
    pub is_kubelet_static: bool,
    /// CPUs that the node's reservation keeps away from pods.
    pub reserved: CpuSet,
    /// CPUs of pods of class SYSTEM.
    pub system: Option<SystemCpus>,
}

/// CPUs of one NUMA node in one socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuPool {
    pub socket: u32,
    pub node: u32,
    pub cpus: CpuSet,
}

/// CPUs of pods of class SYSTEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCpus {
    pub cpus: CpuSet,
    /// Whether no other pod may use them.
    pub is_exclusive: bool,
}

impl NodeTopology {
    /// The CPUs that no pod but those of class SYSTEM may use; none when others may, too.
    pub fn exclusive_system_cpus(&self) -> Option<&CpuSet> {
        self.system.as_ref().filter(|system| system.is_exclusive).map(|system| &system.cpus)
    }

    /// All pools of LS pods in their order, joined by commas, as cpusets of LS pods are written: `0-7,16-23,8-15,24-31`.
    pub fn shared_pool_text(&self) -> String {
        let pools = self.shared_pools.iter().filter(|pool| !pool.cpus.is_empty());
        pools.map(|pool| pool.cpus.to_string()).collect::<Vec<_>>().join(",")
    }
}
