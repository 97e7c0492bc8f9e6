//! The words of pods, nodes and configurations about CPUs and NUMA nodes, as far as they mean something.

use koord_types::{
    node_annotations::{NodeCpuBindPolicy, NumaAllocateStrategy, NumaTopologyPolicy},
    numa::{CpuBindPolicy, CpuExclusivePolicy, KubeletCpuManagerPolicy},
};

/// How CPUs of a pod's own are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bind {
    /// Whole cores.
    FullPcpus,
    /// One CPU per core.
    SpreadByPcpus,
}

/// What a pod does not share with pods that say the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusive {
    /// Everything may be shared.
    #[default]
    None,
    /// Cores.
    Pcpu,
    /// NUMA nodes.
    NumaNode,
}

/// Which NUMA nodes are filled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    #[default]
    LeastAllocated,
    MostAllocated,
}

/// How strictly the resources of a pod are kept together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Not at all.
    #[default]
    None,
    /// On as few NUMA nodes as possible.
    BestEffort,
    /// On as few NUMA nodes as possible, or not on this node.
    Restricted,
    /// On one NUMA node, or not on this node.
    SingleNumaNode,
}

impl Bind {
    /// The policy of a pod; none where it says nothing that binds CPUs.
    pub fn of_pod(policy: &CpuBindPolicy) -> Option<Self> {
        match policy {
            CpuBindPolicy::FullPcpus => Some(Self::FullPcpus),
            CpuBindPolicy::SpreadByPcpus => Some(Self::SpreadByPcpus),
            CpuBindPolicy::Default | CpuBindPolicy::ConstrainedBurst | CpuBindPolicy::Other(_) => None,
        }
    }

    /// The policy of a node's label.
    pub fn of_node(policy: &NodeCpuBindPolicy) -> Option<Self> {
        match policy {
            NodeCpuBindPolicy::FullPcpusOnly => Some(Self::FullPcpus),
            NodeCpuBindPolicy::SpreadByPcpus => Some(Self::SpreadByPcpus),
            NodeCpuBindPolicy::None | NodeCpuBindPolicy::Other(_) => None,
        }
    }

    /// The policy that follows from how the kubelet gives out CPUs.
    pub fn of_kubelet(policy: &KubeletCpuManagerPolicy) -> Option<Self> {
        let only_full = policy.options.get("full-pcpus-only").is_some_and(|value| value == "true");
        (policy.policy == "static" && only_full).then_some(Self::FullPcpus)
    }

    /// As pods write it.
    pub fn word(self) -> CpuBindPolicy {
        match self {
            Self::FullPcpus => CpuBindPolicy::FullPcpus,
            Self::SpreadByPcpus => CpuBindPolicy::SpreadByPcpus,
        }
    }
}

impl Exclusive {
    pub const COUNT: usize = 3;

    pub fn of_pod(policy: Option<&CpuExclusivePolicy>) -> Self {
        match policy {
            Some(CpuExclusivePolicy::PcpuLevel) => Self::Pcpu,
            Some(CpuExclusivePolicy::NumaNodeLevel) => Self::NumaNode,
            None | Some(CpuExclusivePolicy::None | CpuExclusivePolicy::Other(_)) => Self::None,
        }
    }

    /// As pods write it; nothing where everything may be shared.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Pcpu => "PCPULevel",
            Self::NumaNode => "NUMANodeLevel",
        }
    }

    /// Its position among all of them.
    pub fn index(self) -> usize {
        match self {
            Self::None => 0,
            Self::Pcpu => 1,
            Self::NumaNode => 2,
        }
    }
}

impl Fill {
    /// The order of a node's label. Whatever does not fill the fullest first fills the emptiest.
    pub fn of_node(strategy: &NumaAllocateStrategy) -> Self {
        if *strategy == NumaAllocateStrategy::MostAllocated { Self::MostAllocated } else { Self::LeastAllocated }
    }

    /// Sorts by how much is free.
    pub fn rank(self, free: usize) -> i64 {
        let free = i64::try_from(free).unwrap_or(i64::MAX);
        if self == Self::MostAllocated { free } else { -free }
    }
}

impl Policy {
    /// As labels of nodes say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::BestEffort => "BestEffort",
            Self::Restricted => "Restricted",
            Self::SingleNumaNode => "SingleNUMANode",
        }
    }

    pub fn of(policy: &NumaTopologyPolicy) -> Self {
        match policy {
            NumaTopologyPolicy::BestEffort => Self::BestEffort,
            NumaTopologyPolicy::Restricted => Self::Restricted,
            NumaTopologyPolicy::SingleNumaNode => Self::SingleNumaNode,
            NumaTopologyPolicy::None | NumaTopologyPolicy::Other(_) => Self::None,
        }
    }

    /// The policy that the kubelet reports in its NodeResourceTopology. Where it keeps to it container by container, nothing
    /// follows for pods.
    pub fn of_kubelet(policies: &[String]) -> Self {
        let known = policies.iter().find_map(|policy| match policy.as_str() {
            // What it keeps to pod by pod is a promise about pods under either name.
            "BestEffort" | "BestEffortPodLevel" => Some(Self::BestEffort),
            "Restricted" | "RestrictedPodLevel" => Some(Self::Restricted),
            "SingleNUMANodePodLevel" => Some(Self::SingleNumaNode),
            _ => None,
        });
        known.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_s_pod_scope_is_known_under_both_of_its_names() {
        let of = |name: &str| Policy::of_kubelet(&[name.to_owned()]);
        assert_eq!(["BestEffort", "BestEffortPodLevel"].map(of), [Policy::BestEffort; 2]);
        assert_eq!(["Restricted", "RestrictedPodLevel"].map(of), [Policy::Restricted; 2]);
        assert_eq!(of("SingleNUMANodePodLevel"), Policy::SingleNumaNode);
        assert_eq!(Policy::of_kubelet(&["None", "Restricted"].map(str::to_owned)), Policy::Restricted);
        let by_container =
            ["BestEffort", "Restricted", "SingleNUMANode"].map(|name| of(&format!("{name}ContainerLevel")));
        assert_eq!(
            (by_container, of("None"), Policy::of_kubelet(&[])),
            ([Policy::None; 3], Policy::None, Policy::None)
        );
    }
}
