//! Which CPUs BE pods get: whole cores first, spread evenly over NUMA nodes.

use std::{cmp::Reverse, collections::BTreeMap};

use koord_scheduling::{Cpu, CpuSet};

/// CPUs that BE pods may get, by who else uses them.
#[derive(Clone, Debug, Default)]
pub struct CpuCandidates {
    /// CPUs that LSR pods have for themselves.
    pub lsr: Vec<Cpu>,
    /// All others.
    pub shared: Vec<Cpu>,
}

impl CpuCandidates {
    pub fn len(&self) -> usize {
        self.lsr.len() + self.shared.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Chooses this many CPUs, or all where there are fewer: of LSR pods as many as their share of the candidates gives.
    pub fn select(&self, count: usize) -> CpuSet {
        let count = count.min(self.len());
        // Without candidates there is no share to compute.
        let lsr_count = (count * self.lsr.len()).checked_div(self.len()).unwrap_or_default();
        select_cpus(lsr_count, &self.lsr).into_iter().chain(select_cpus(count - lsr_count, &self.shared)).collect()
    }
}

/// Chooses CPUs in order: pairs of one core from each NUMA node in turn, then single ones in the same way. Nodes with more CPUs come first.
pub fn select_cpus(count: usize, cpus: &[Cpu]) -> Vec<u32> {
    let mut nodes: BTreeMap<(u32, u32), Vec<Cpu>> = BTreeMap::new();
    for cpu in cpus {
        nodes.entry((cpu.socket, cpu.node)).or_default().push(*cpu);
    }
    let mut nodes: Vec<Vec<Cpu>> = nodes.into_values().collect();
    for node in &mut nodes {
        node.sort_unstable_by_key(|cpu| (cpu.core, cpu.id));
    }
    nodes.sort_by_key(|node| (Reverse(node.len()), node.first().map(|cpu| cpu.id)));
    let count = count.min(cpus.len());
    let mut chosen = Vec::with_capacity(count);
    let mut turn = 0;
    let mut fruitless = 0;
    while count - chosen.len() > 1 && fruitless < nodes.len() {
        let pair = take_pair(nodes.get_mut(turn));
        fruitless = if pair.is_some() { 0 } else { fruitless + 1 };
        chosen.extend(pair.into_iter().flatten());
        turn = (turn + 1) % nodes.len();
    }
    while chosen.len() < count {
        chosen.extend(nodes.get_mut(turn).filter(|node| !node.is_empty()).map(|node| node.remove(0).id));
        turn = (turn + 1) % nodes.len();
    }
    chosen
}

/// Takes the first two CPUs of one core.
fn take_pair(node: Option<&mut Vec<Cpu>>) -> Option<[u32; 2]> {
    let node = node?;
    let at = node.windows(2).position(|pair| matches!(pair, [a, b] if a.core == b.core))?;
    Some([node.remove(at).id, node.remove(at).id])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(id: u32, core: u32, node: u32) -> Cpu {
        Cpu { id, core, node, socket: node }
    }

    /// Two sockets of two cores; hyper threads are four apart.
    fn hyper_threads() -> Vec<Cpu> {
        (0..8).map(|id| cpu(id, id % 4, id % 4 / 2)).collect()
    }

    /// The same with threads beside each other.
    fn contiguous() -> Vec<Cpu> {
        (0..8).map(|id| cpu(id, id / 2, id / 4)).collect()
    }

    fn four_nodes() -> Vec<Cpu> {
        (0..16).map(|id| cpu(id, id / 2, id / 4)).collect()
    }

    #[test]
    fn whole_cores_come_first_from_each_numa_node_in_turn() {
        for (count, cpus, chosen) in [
            (3, hyper_threads(), vec![0, 4, 2]),
            (3, contiguous(), vec![0, 1, 4]),
            (5, four_nodes(), vec![0, 1, 4, 5, 8]),
            (8, hyper_threads(), vec![0, 4, 2, 6, 1, 5, 3, 7]),
            (0, hyper_threads(), vec![]),
            (9, hyper_threads(), vec![0, 4, 2, 6, 1, 5, 3, 7]),
            (2, vec![], vec![]),
        ] {
            assert_eq!(select_cpus(count, &cpus), chosen, "{count}");
        }
    }

    #[test]
    fn the_numa_node_with_more_cpus_comes_first() {
        // CPUs 0 and 4 are reserved: the first node has one core left.
        let cpus: Vec<Cpu> = hyper_threads().into_iter().filter(|cpu| cpu.id % 4 != 0).collect();
        assert_eq!(select_cpus(3, &cpus), [2, 6, 1]);
    }

    #[test]
    fn cpus_of_lsr_pods_are_used_in_proportion() {
        let (lsr, shared) = hyper_threads().into_iter().partition(|cpu| cpu.id % 4 < 2);
        let candidates = CpuCandidates { lsr, shared };
        assert_eq!(candidates.select(4).to_string(), "0,2,4,6");
        let one = CpuCandidates { lsr: vec![cpu(4, 0, 0)], shared: vec![cpu(5, 1, 0), cpu(6, 2, 0), cpu(7, 3, 0)] };
        assert_eq!(one.select(2).to_string(), "5-6", "not the one of the LSR pod");
    }

    /// The original divides by the number of candidates.
    #[test]
    fn without_candidates_nothing_is_chosen() {
        assert!(CpuCandidates::default().select(2).is_empty());
    }
}
