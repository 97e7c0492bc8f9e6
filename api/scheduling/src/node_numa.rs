//! The CPUs and NUMA nodes of a node, and what of them pods have.

use std::collections::BTreeMap;

use koord_resource::ResourceList;

use crate::{CpuSet, CpuTopology, devices::remaining};

/// The CPUs and NUMA nodes of one node, with what is allocated of them.
///
/// ```
/// use std::collections::BTreeMap;
/// use koord_scheduling::{Cpu, NodeNuma};
/// let cpus = (0..4).map(|id| Cpu { id, core: id / 2, node: 0, socket: 0 });
/// let mut node = NodeNuma::new(cpus.collect(), BTreeMap::new());
/// node.allocate_cpus("default/a", "0-1".parse()?);
/// node.allocate_cpus("default/b", "1-2".parse()?);
/// assert_eq!(node.free_cpus(0).to_string(), "3");
/// assert_eq!(node.cpu_conflicts()[0].to_string(), "CPUs 1 belong to default/a, default/b");
/// # Ok::<(), koord_scheduling::ParseCpuSetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeNuma {
    /// The place of each CPU; without CPUs where the node does not report it.
    pub topology: CpuTopology,
    /// The allocatable resources of each NUMA node, as the node reports them.
    pub zones: BTreeMap<u32, ResourceList>,
    cpus: BTreeMap<String, CpuSet>,
    shares: BTreeMap<u32, BTreeMap<String, ResourceList>>,
}

/// Why allocations of CPUs contradict each other or the node's report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuConflict {
    /// Pods have CPUs of each other.
    #[error("CPUs {cpus} belong to {}", pods.join(", "))]
    Shared {
        /// The CPUs.
        cpus: CpuSet,
        /// The pods, by namespace and name.
        pods: Vec<String>,
    },
    /// A pod has CPUs that the node does not report.
    #[error("{pod} has CPUs {cpus}, which the node does not report")]
    Unknown {
        /// The CPUs.
        cpus: CpuSet,
        /// The pod, by namespace and name.
        pod: String,
    },
}

impl NodeNuma {
    /// A node with these CPUs and these allocatable resources of each NUMA node, with nothing allocated.
    pub fn new(topology: CpuTopology, zones: BTreeMap<u32, ResourceList>) -> Self {
        Self { topology, zones, ..Self::default() }
    }

    /// Allocates CPUs to a pod.
    pub fn allocate_cpus(&mut self, pod: &str, cpus: CpuSet) {
        if !cpus.is_empty() {
            self.cpus.insert(pod.to_owned(), cpus);
        }
    }

    /// Allocates resources of a NUMA node to a pod. Several shares add up.
    pub fn allocate(&mut self, numa_node: u32, pod: &str, share: &ResourceList) {
        self.shares.entry(numa_node).or_default().entry(pod.to_owned()).or_default().add(share);
    }

    /// The NUMA nodes that are reported or allocated.
    pub fn numa_nodes(&self) -> Vec<u32> {
        let reported = self.zones.keys().copied().chain(self.topology.nodes().map(|(node, _)| node));
        let mut nodes: Vec<u32> = reported.chain(self.shares.keys().copied()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The CPUs of a NUMA node that no pod has.
    pub fn free_cpus(&self, numa_node: u32) -> CpuSet {
        let of_node = self.topology.nodes().find(|(node, _)| *node == numa_node).map(|(_, cpus)| cpus.clone());
        self.cpus.values().fold(of_node.unwrap_or_default(), |free, cpus| free.difference(cpus))
    }

    /// The allocatable resources of a NUMA node minus those that pods have of it, not below zero.
    pub fn free(&self, numa_node: u32) -> ResourceList {
        let total = self.zones.get(&numa_node).cloned().unwrap_or_default();
        let shares = self.shares.get(&numa_node).into_iter().flat_map(BTreeMap::values);
        remaining(&total, &shares.fold(ResourceList::new(), |sum, share| sum.plus(share)))
    }

    /// The pods that have CPUs of their own, by namespace and name.
    pub fn cpus_of_pods(&self) -> impl Iterator<Item = (&str, &CpuSet)> {
        self.cpus.iter().map(|(pod, cpus)| (pod.as_str(), cpus))
    }

    /// CPUs that several pods have, by the pods, and CPUs that the node does not report.
    pub fn cpu_conflicts(&self) -> Vec<CpuConflict> {
        let mut owners: BTreeMap<u32, Vec<&String>> = BTreeMap::new();
        for (pod, cpus) in &self.cpus {
            cpus.iter().for_each(|cpu| owners.entry(cpu).or_default().push(pod));
        }
        let mut shared: BTreeMap<Vec<&String>, Vec<u32>> = BTreeMap::new();
        for (cpu, pods) in owners.into_iter().filter(|(_, pods)| pods.len() > 1) {
            shared.entry(pods).or_default().push(cpu);
        }
        let shared = shared.into_iter().map(|(pods, cpus)| CpuConflict::Shared {
            cpus: cpus.into_iter().collect(),
            pods: pods.into_iter().cloned().collect(),
        });
        let known = self.topology.cpus();
        let unknown = self.cpus.iter().filter(|_| !known.is_empty()).filter_map(|(pod, cpus)| {
            let cpus = cpus.difference(known);
            (!cpus.is_empty()).then(|| CpuConflict::Unknown { cpus, pod: pod.clone() })
        });
        shared.chain(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;

    fn cpus(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn list(text: &str) -> ResourceList {
        serde_json::from_str(text).unwrap()
    }

    /// Two NUMA nodes of four CPUs.
    fn node() -> NodeNuma {
        let topology = (0..8).map(|id| Cpu { id, core: id / 2, node: id / 4, socket: 0 }).collect();
        let zone = list(r#"{"cpu":"4","memory":"16Gi"}"#);
        NodeNuma::new(topology, BTreeMap::from([(0, zone.clone()), (1, zone)]))
    }

    #[test]
    fn what_pods_have_is_not_free() {
        let mut node = node();
        node.allocate_cpus("a/x", cpus("0-1"));
        node.allocate(0, "a/x", &list(r#"{"cpu":"2","memory":"1Gi","nvidia.com/gpu":"1"}"#));
        node.allocate(0, "a/y", &list(r#"{"cpu":"500m"}"#));
        node.allocate(1, "a/y", &list(r#"{"cpu":"6"}"#));
        assert_eq!((node.free_cpus(0), node.free_cpus(1), node.free_cpus(2)), (cpus("2-3"), cpus("4-7"), cpus("")));
        assert_eq!(node.free(0), list(r#"{"cpu":"1500m","memory":"15Gi"}"#));
        assert_eq!(node.free(1), list(r#"{"cpu":"0","memory":"16Gi"}"#), "not below zero");
        assert_eq!(node.numa_nodes(), [0, 1]);
        assert_eq!(node.cpu_conflicts(), []);
    }

    #[test]
    fn cpus_of_several_pods_are_reported_once_for_the_same_pods() {
        let mut node = node();
        for (pod, text) in [("a/x", "0-3"), ("a/y", "2-4"), ("a/z", "3,12")] {
            node.allocate_cpus(pod, cpus(text));
        }
        node.allocate_cpus("a/shares-a-pool", cpus(""));
        let words: Vec<String> = node.cpu_conflicts().iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "CPUs 2 belong to a/x, a/y",
                "CPUs 3 belong to a/x, a/y, a/z",
                "a/z has CPUs 12, which the node does not report"
            ]
        );
    }

    #[test]
    fn without_a_topology_every_cpu_may_exist() {
        let mut node = NodeNuma::default();
        node.allocate_cpus("a/x", cpus("0-500"));
        assert_eq!(node.cpu_conflicts(), []);
    }
}
