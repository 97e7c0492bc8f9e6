//! Where the CPUs of a node sit.

use std::collections::{BTreeMap, BTreeSet};

use crate::{CPU_MAX, CpuSet};

/// Where a CPU (a hardware thread) sits. Numbers of cores are unique in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu {
    /// The number of the CPU.
    pub id: u32,
    /// The physical core.
    pub core: u32,
    /// The NUMA node.
    pub node: u32,
    /// The socket.
    pub socket: u32,
}

/// The CPUs of a node by core, NUMA node and socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTopology {
    cpus: BTreeMap<u32, Cpu>,
    cores: BTreeMap<u32, CpuSet>,
    nodes: BTreeMap<u32, CpuSet>,
    sockets: BTreeMap<u32, CpuSet>,
}

impl FromIterator<Cpu> for CpuTopology {
    /// Of several places of one CPU the last counts. Numbers above [`CPU_MAX`] are left out.
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        let cpus: BTreeMap<u32, Cpu> =
            cpus.into_iter().filter(|cpu| cpu.id <= CPU_MAX).map(|cpu| (cpu.id, cpu)).collect();
        let grouped = |group: fn(&Cpu) -> u32| {
            let mut groups: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for cpu in cpus.values() {
                groups.entry(group(cpu)).or_default().insert(cpu.id);
            }
            groups.into_iter().map(|(number, cpus)| (number, cpus.into_iter().collect())).collect()
        };
        let (cores, nodes, sockets) = (grouped(|cpu| cpu.core), grouped(|cpu| cpu.node), grouped(|cpu| cpu.socket));
        Self { cpus, cores, nodes, sockets }
    }
}

impl CpuTopology {
    /// Where a CPU sits.
    pub fn get(&self, cpu: u32) -> Option<Cpu> {
        self.cpus.get(&cpu).copied()
    }

    /// All CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.cpus.keys().copied().collect()
    }

    /// The CPUs of each core, in the order of the cores.
    pub fn cores(&self) -> impl Iterator<Item = (u32, &CpuSet)> {
        self.cores.iter().map(|(core, cpus)| (*core, cpus))
    }

    /// The CPUs of each NUMA node, in their order.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, &CpuSet)> {
        self.nodes.iter().map(|(node, cpus)| (*node, cpus))
    }

    /// The CPUs of each socket, in their order.
    pub fn sockets(&self) -> impl Iterator<Item = (u32, &CpuSet)> {
        self.sockets.iter().map(|(socket, cpus)| (*socket, cpus))
    }

    /// CPUs per core; 0 without cores. Cores of different sizes count as the smallest.
    pub fn cpus_per_core(&self) -> usize {
        self.cores.values().map(CpuSet::len).min().unwrap_or(0)
    }

    /// The cores of which no CPU is missing in a set, as CPUs.
    pub fn whole_cores(&self, cpus: &CpuSet) -> CpuSet {
        let whole = self.cores.values().filter(|core| core.is_subset(cpus));
        whole.fold(CpuSet::default(), |sum, core| sum.union(core))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets with a NUMA node each, two cores in each, two CPUs per core; siblings are four apart.
    fn topology() -> CpuTopology {
        (0..8).map(|id| Cpu { id, core: id % 4, node: id % 4 / 2, socket: id % 4 / 2 }).collect()
    }

    #[test]
    fn cpus_are_grouped_by_core_numa_node_and_socket() {
        let topology = topology();
        let text =
            |groups: Vec<(u32, &CpuSet)>| groups.into_iter().map(|(_, cpus)| cpus.to_string()).collect::<Vec<_>>();
        assert_eq!(text(topology.cores().collect()), ["0,4", "1,5", "2,6", "3,7"]);
        assert_eq!(text(topology.nodes().collect()), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(text(topology.sockets().collect()), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!((topology.cpus().to_string().as_str(), topology.cpus_per_core()), ("0-7", 2));
        assert_eq!((topology.get(6).map(|cpu| cpu.node), topology.get(8)), (Some(1), None));
    }

    #[test]
    fn only_cores_with_all_their_cpus_are_whole() {
        assert_eq!(topology().whole_cores(&"0,4,1,2-3,7".parse().unwrap()).to_string(), "0,3-4,7");
        assert_eq!(CpuTopology::default().cpus_per_core(), 0);
    }
}
