//! Where the CPUs of a node sit.

use std::collections::{BTreeMap, BTreeSet};

use crate::{CPU_MAX, CpuSet, siblings::Siblings};

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
    /// In the order of their numbers.
    cpus: Vec<Cpu>,
    cores: Vec<(u32, CpuSet)>,
    nodes: Vec<(u32, CpuSet)>,
    sockets: Vec<(u32, CpuSet)>,
    places: Vec<NumaPlace>,
    all: CpuSet,
    /// None where CPUs are numbered irregularly.
    siblings: Option<Siblings>,
    has_even_cores: bool,
    mean_cpus_per_core: usize,
}

/// A NUMA node whose cores are in no other one, and which is in one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaPlace {
    /// Its number.
    pub node: u32,
    /// The number of its socket.
    pub socket: u32,
    /// The places of its cores among all, in order.
    cores: Vec<usize>,
    /// The place of its socket among all.
    socket_at: usize,
}

impl FromIterator<Cpu> for CpuTopology {
    /// Of several places of one CPU the last counts. Numbers above [`CPU_MAX`] are left out.
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        let cpus: BTreeMap<u32, Cpu> =
            cpus.into_iter().filter(|cpu| cpu.id <= CPU_MAX).map(|cpu| (cpu.id, cpu)).collect();
        let grouped = |group: fn(&Cpu) -> u32| -> Vec<(u32, CpuSet)> {
            let mut groups: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for cpu in cpus.values() {
                groups.entry(group(cpu)).or_default().insert(cpu.id);
            }
            groups.into_iter().map(|(number, cpus)| (number, cpus.into_iter().collect())).collect()
        };
        let (cores, nodes, sockets) = (grouped(|cpu| cpu.core), grouped(|cpu| cpu.node), grouped(|cpu| cpu.socket));
        let places = places(&cores, &nodes, &sockets);
        let is_even = cores.iter().all(|(_, core)| core.len() * cores.len() == cpus.len());
        Self {
            all: cpus.keys().copied().collect(),
            siblings: Siblings::of(&cores),
            has_even_cores: is_even && !places.is_empty(),
            mean_cpus_per_core: cpus.len().checked_div(cores.len()).unwrap_or(0),
            cpus: cpus.into_values().collect(),
            cores,
            nodes,
            sockets,
            places,
        }
    }
}

/// All NUMA nodes; none where the cores of one are in several, or one is in several sockets.
fn places(cores: &[(u32, CpuSet)], nodes: &[(u32, CpuSet)], sockets: &[(u32, CpuSet)]) -> Vec<NumaPlace> {
    let place = |(node, cpus): &(u32, CpuSet)| {
        let socket_at = sockets.iter().position(|(_, socket)| cpus.is_subset(socket))?;
        let (socket, _) = sockets.get(socket_at)?;
        let touched = cores.iter().enumerate().filter(|(_, (_, core))| core.common(cpus) > 0);
        let own = touched.map(|(at, (_, core))| core.is_subset(cpus).then_some(at));
        Some(NumaPlace { node: *node, socket: *socket, cores: own.collect::<Option<_>>()?, socket_at })
    };
    nodes.iter().map(place).collect::<Option<_>>().unwrap_or_default()
}

impl CpuTopology {
    /// Where a CPU sits.
    pub fn get(&self, cpu: u32) -> Option<Cpu> {
        let at = self.cpus.binary_search_by_key(&cpu, |known| known.id).ok()?;
        self.cpus.get(at).copied()
    }

    /// All CPUs.
    #[inline]
    pub fn cpus(&self) -> &CpuSet {
        &self.all
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

    /// How many cores, NUMA nodes and sockets there are, and how many CPUs.
    #[inline]
    pub fn counts(&self) -> [usize; 4] {
        [self.cores.len(), self.nodes.len(), self.sockets.len(), self.cpus.len()]
    }

    /// The NUMA nodes, each with its CPUs; none where the cores of one are in several, or one is in several sockets.
    pub fn places(&self) -> impl Iterator<Item = (&NumaPlace, &CpuSet)> {
        self.places.iter().zip(self.nodes.iter().map(|(_, cpus)| cpus))
    }

    /// The CPUs of each core of a NUMA node, in the order of the cores.
    pub fn cores_of(&self, place: &NumaPlace) -> impl Iterator<Item = &CpuSet> {
        place.cores.iter().filter_map(|at| self.cores.get(*at).map(|(_, cpus)| cpus))
    }

    /// The CPUs of a NUMA node's socket, of all its NUMA nodes.
    pub fn socket_of(&self, place: &NumaPlace) -> Option<&CpuSet> {
        self.sockets.get(place.socket_at).map(|(_, cpus)| cpus)
    }

    /// Whether all cores have as many CPUs, and no core is in several NUMA nodes, nor a NUMA node in several sockets.
    #[inline]
    pub fn has_even_cores(&self) -> bool {
        self.has_even_cores
    }

    /// CPUs per core on average, rounded down; 0 without cores.
    #[inline]
    pub fn mean_cpus_per_core(&self) -> usize {
        self.mean_cpus_per_core
    }

    /// CPUs per core; 0 without cores. Cores of different sizes count as the smallest.
    pub fn cpus_per_core(&self) -> usize {
        self.cores.iter().map(|(_, cpus)| cpus.len()).min().unwrap_or(0)
    }

    /// The cores of which no CPU is missing in a set, as CPUs.
    pub fn whole_cores(&self, cpus: &CpuSet) -> CpuSet {
        match &self.siblings {
            Some(siblings) => siblings.whole_cores(cpus, &self.all),
            None => self.all.difference(&self.with_siblings(&self.all.difference(cpus))),
        }
    }

    /// The CPUs of a set, all of this topology, and all others of their cores.
    pub fn with_siblings(&self, cpus: &CpuSet) -> CpuSet {
        if let Some(siblings) = &self.siblings {
            return siblings.with_siblings(cpus);
        }
        let touched = self.cores.iter().map(|(_, core)| core).filter(|core| core.common(cpus) > 0);
        touched.fold(CpuSet::default(), |sum, core| sum.union(core))
    }

    /// Of each core the first CPU that is in a set of CPUs of this topology.
    pub fn first_of_cores(&self, cpus: &CpuSet) -> CpuSet {
        if let Some(siblings) = &self.siblings {
            return siblings.first_of_cores(cpus);
        }
        self.cores.iter().filter_map(|(_, core)| core.intersection(cpus).iter().next()).collect()
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
    fn numa_nodes_have_a_place_where_they_share_neither_cores_nor_sockets() {
        let topology = topology();
        let cores = |place: &NumaPlace| topology.cores_of(place).map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let places = topology.places().map(|(place, cpus)| (place.node, place.socket, cores(place), cpus.to_string()));
        let expected = [(0, 0, "0,4 1,5", "0-1,4-5"), (1, 1, "2,6 3,7", "2-3,6-7")]
            .map(|(node, socket, cores, cpus)| (node, socket, cores.to_owned(), cpus.to_owned()));
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(topology.counts(), [4, 2, 2, 8]);
        let shared = |cpu: Cpu| {
            let others = (0..8).map(|id| Cpu { id, core: id % 4, node: id % 4 / 2, socket: id % 4 / 2 });
            others.chain([cpu]).collect::<CpuTopology>().places().count()
        };
        assert_eq!(shared(Cpu { id: 4, core: 0, node: 1, socket: 1 }), 0, "a core in two NUMA nodes");
        assert_eq!(shared(Cpu { id: 9, core: 9, node: 0, socket: 1 }), 0, "a NUMA node in two sockets");
        assert_eq!(shared(Cpu { id: 9, core: 9, node: 0, socket: 0 }), 2);
    }

    #[test]
    fn only_cores_with_all_their_cpus_are_whole() {
        assert_eq!(topology().whole_cores(&"0,4,1,2-3,7".parse().unwrap()).to_string(), "0,3-4,7");
        assert_eq!(CpuTopology::default().cpus_per_core(), 0);
    }
}
