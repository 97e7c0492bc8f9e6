//! The CPU accumulator: which CPUs of a node a pod gets (`spec/scheduler.md` 3B.7).

mod case;
mod one_node;
#[cfg(test)]
mod tests;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use koord_scheduling::{Cpu, CpuSet, CpuTopology};

pub use self::case::CpuCase;
use super::{
    ledger::{Held, Ledger},
    policy::{Bind, Exclusive, Fill},
};

/// A node's CPUs, for a pod that wants some.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// Where each CPU sits.
    pub topology: &'a CpuTopology,
    /// What pods have of them.
    pub ledger: &'a Ledger,
    /// How many pods may have the same CPU.
    pub refs_max: u32,
    /// Which NUMA nodes are filled first.
    pub fill: Fill,
}

/// How a pod requests its CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPolicies {
    /// How they are chosen.
    pub bind: Bind,
    /// What it does not share with pods that say the same.
    pub exclusive: Exclusive,
}

/// Takes so many of the available CPUs, at first of those that are preferred; none where there are not enough.
pub fn take_preferred(
    offer: Offer<'_>,
    available: &CpuSet,
    preferred: &CpuSet,
    needed: usize,
    policies: CpuPolicies,
) -> Option<CpuSet> {
    if preferred.is_empty() {
        return take(offer, available, needed, policies);
    }
    let preferred = available.intersection(preferred);
    let of_preferred = take(offer, &preferred, needed.min(preferred.len()), policies)?;
    let rest = take(offer, &available.difference(&preferred), needed - of_preferred.len(), policies)?;
    Some(of_preferred.union(&rest))
}

/// Takes so many of the available CPUs; none where there are not enough.
pub fn take(offer: Offer<'_>, available: &CpuSet, needed: usize, policies: CpuPolicies) -> Option<CpuSet> {
    if needed == 0 {
        return Some(CpuSet::default());
    }
    if needed > available.len() {
        return None;
    }
    one_node::take(offer, available, needed, policies).or_else(|| take_step_by_step(offer, available, needed, policies))
}

fn take_step_by_step(offer: Offer<'_>, available: &CpuSet, needed: usize, policies: CpuPolicies) -> Option<CpuSet> {
    let mut accumulator = Accumulator::new(offer, available, needed, policies);
    let is_by_core = policies.bind == Bind::FullPcpus || accumulator.per_core == 1;
    let is_done = is_by_core && accumulator.take_cores()
        || policies.bind != Bind::FullPcpus && accumulator.take_spread()
        || accumulator.take_any();
    is_done.then_some(accumulator.result)
}

/// Whether CPUs of cores and NUMA nodes that are taken exclusively are left out: at first they are.
const SPARING: [bool; 2] = [true, false];

struct Accumulator<'a> {
    offer: Offer<'a>,
    policies: CpuPolicies,
    /// Averages, as the original has them.
    per_core: usize,
    per_node: usize,
    per_socket: usize,
    /// What can be taken, by number.
    free: Vec<Cpu>,
    /// Cores and NUMA nodes of pods with the exclusive policy of this one.
    blocked_cores: BTreeSet<u32>,
    blocked_nodes: BTreeSet<u32>,
    needed: usize,
    result: CpuSet,
}

impl<'a> Accumulator<'a> {
    fn new(offer: Offer<'a>, available: &CpuSet, needed: usize, policies: CpuPolicies) -> Self {
        let [cores, nodes, sockets, cpus] = offer.topology.counts();
        let per = |groups: usize| cpus / groups.max(1);
        let mut accumulator = Self {
            offer,
            policies,
            per_core: per(cores),
            per_node: per(nodes),
            per_socket: per(sockets),
            free: available.iter().filter_map(|cpu| offer.topology.get(cpu)).collect(),
            blocked_cores: BTreeSet::new(),
            blocked_nodes: BTreeSet::new(),
            needed,
            result: CpuSet::default(),
        };
        if policies.exclusive != Exclusive::None {
            for cpu in offer.ledger.held_by(policies.exclusive).iter().filter_map(|cpu| offer.topology.get(cpu)) {
                accumulator.block(cpu);
            }
        }
        accumulator
    }

    fn block(&mut self, cpu: Cpu) {
        match self.policies.exclusive {
            Exclusive::None => {}
            Exclusive::Pcpu => _ = self.blocked_cores.insert(cpu.core),
            Exclusive::NumaNode => _ = self.blocked_nodes.insert(cpu.node),
        }
    }

    fn is_core_blocked(&self, cpu: &Cpu) -> bool {
        self.blocked_cores.contains(&cpu.core)
    }

    fn is_node_blocked(&self, cpu: &Cpu) -> bool {
        self.blocked_nodes.contains(&cpu.node)
    }

    /// Takes CPUs from the front of a list, as many as are still needed. Says whether none is needed any more.
    fn take(&mut self, cpus: &[Cpu]) -> bool {
        for cpu in &cpus[..self.needed.min(cpus.len())] {
            self.result.insert(cpu.id);
            self.needed -= 1;
            self.block(*cpu);
        }
        self.free.retain(|cpu| !self.result.contains(cpu.id));
        self.needed == 0
    }

    /// Takes the first list that has enough.
    fn take_first(&mut self, lists: Vec<Vec<Cpu>>, is_spread: bool) -> bool {
        let Some(list) = lists.into_iter().find(|list| list.len() >= self.needed) else { return false };
        let list = if is_spread { self.spread(list) } else { list };
        self.take(&list)
    }

    // Whole cores.

    fn take_cores(&mut self) -> bool {
        if self.needed <= self.per_node {
            for is_sparing in SPARING {
                let nodes = self.cores_of_nodes(is_sparing);
                if self.take_first(nodes, false) {
                    return true;
                }
            }
        }
        let sockets = self.cores_of_sockets();
        if self.needed <= self.per_socket && self.take_first(sockets.clone(), false) {
            return true;
        }
        self.take_sockets(sockets)
    }

    /// Takes sockets as a whole, the largest first, and then cores of those that are too large, the smallest first.
    fn take_sockets(&mut self, mut sockets: Vec<Vec<Cpu>>) -> bool {
        sockets.sort_by_key(|cpus| Reverse(cpus.len()));
        let mut too_large = Vec::new();
        for cpus in sockets {
            if cpus.len() > self.needed {
                too_large.push(cpus);
            } else if self.take(&cpus) {
                return true;
            }
        }
        too_large.sort_by_key(Vec::len);
        for core in too_large.iter().flat_map(|cpus| cpus.chunks(self.per_core.max(1))).collect::<Vec<_>>() {
            if self.needed >= self.per_core && self.take(core) {
                return true;
            }
        }
        false
    }

    fn cores_of_nodes(&self, is_sparing: bool) -> Vec<Vec<Cpu>> {
        let free = self.free.iter().filter(|cpu| !is_sparing || !self.is_node_blocked(cpu));
        let free: Vec<Cpu> = free.copied().collect();
        let by_socket = count(&free, |cpu| cpu.socket);
        let mut nodes = self.whole_cores(&free, |cpu| cpu.node);
        let fill = self.offer.fill;
        nodes.sort_by_key(|(node, cpus)| {
            let of_socket = cpus.first().and_then(|cpu| by_socket.get(&cpu.socket)).copied().unwrap_or(0);
            // Of a NUMA node whole cores count, of its socket all CPUs.
            (fill.rank(cpus.len()), fill.rank(of_socket), *node)
        });
        nodes.into_iter().map(|(_, cpus)| cpus).collect()
    }

    fn cores_of_sockets(&self) -> Vec<Vec<Cpu>> {
        let mut sockets = self.whole_cores(&self.free, |cpu| cpu.socket);
        sockets.sort_by_key(|(socket, cpus)| (self.offer.fill.rank(cpus.len()), *socket));
        sockets.into_iter().map(|(_, cpus)| cpus).collect()
    }

    /// The CPUs of each group whose cores are free as a whole, core by core: those with the fewest users first.
    fn whole_cores(&self, free: &[Cpu], group: fn(&Cpu) -> u32) -> Vec<(u32, Vec<Cpu>)> {
        let mut by_core = free.to_vec();
        by_core.sort_by_key(|cpu| cpu.core);
        let mut cores: Vec<&[Cpu]> = by_core.chunk_by(|one, other| one.core == other.core).collect();
        cores.retain(|core| core.len() == self.per_core);
        cores.sort_by_key(|core| self.refs(core));
        let cpus = cores.concat();
        grouped(&cpus, group).into_iter().collect()
    }

    // One CPU per core.

    fn take_spread(&mut self) -> bool {
        if self.needed <= self.per_node {
            for is_sparing in SPARING {
                let nodes = self.cpus_of_nodes(is_sparing);
                if self.take_first(nodes, true) {
                    return true;
                }
            }
        }
        self.needed <= self.per_socket
            && SPARING.into_iter().any(|is_sparing| {
                let sockets = self.cpus_of_sockets(is_sparing);
                self.take_first(sockets, true)
            })
    }

    fn cpus_of_nodes(&self, is_sparing: bool) -> Vec<Vec<Cpu>> {
        let is_blocked = |cpu: &Cpu| is_sparing && (self.is_core_blocked(cpu) || self.is_node_blocked(cpu));
        let free: Vec<Cpu> = self.free.iter().filter(|cpu| !is_blocked(cpu)).copied().collect();
        let by_socket = count(&free, |cpu| cpu.socket);
        let mut nodes: Vec<(u32, Vec<Cpu>)> = grouped(&free, |cpu| cpu.node).into_iter().collect();
        nodes.sort_by_key(|(node, cpus)| {
            let of_socket = cpus.first().and_then(|cpu| by_socket.get(&cpu.socket)).copied().unwrap_or(0);
            (self.offer.fill.rank(cpus.len()), self.offer.fill.rank(of_socket), *node)
        });
        nodes.into_iter().map(|(_, cpus)| self.thinned(cpus, is_sparing)).collect()
    }

    fn cpus_of_sockets(&self, is_sparing: bool) -> Vec<Vec<Cpu>> {
        let free = self.free.iter().filter(|cpu| !is_sparing || !self.is_core_blocked(cpu));
        let free: Vec<Cpu> = free.copied().collect();
        let sockets = grouped(&free, |cpu| cpu.socket).into_iter();
        let mut sockets: Vec<(u32, Vec<Cpu>)> =
            sockets.map(|(socket, cpus)| (socket, self.thinned(cpus, is_sparing))).collect();
        sockets.sort_by_key(|(socket, cpus)| (self.offer.fill.rank(cpus.len()), *socket));
        sockets.into_iter().map(|(_, cpus)| cpus).collect()
    }

    /// CPUs with the fewest users first; with `is_sparing` the first of each core alone.
    fn thinned(&self, mut cpus: Vec<Cpu>, is_sparing: bool) -> Vec<Cpu> {
        cpus.sort_by_key(|cpu| (self.refs(&[*cpu]), cpu.id));
        let mut cores = BTreeSet::new();
        cpus.retain(|cpu| !is_sparing || cores.insert(cpu.core));
        cpus
    }

    // What is left.

    fn take_any(&mut self) -> bool {
        SPARING.into_iter().any(|is_sparing| {
            let cpus = self.any(is_sparing);
            self.take(&cpus)
        })
    }

    /// All CPUs: those of sockets first of which some are taken already, and of cores with the fewest free.
    fn any(&self, is_sparing: bool) -> Vec<Cpu> {
        let is_blocked = |cpu: &Cpu| is_sparing && (self.is_core_blocked(cpu) || self.is_node_blocked(cpu));
        let free: Vec<Cpu> = self.free.iter().filter(|cpu| !is_blocked(cpu)).copied().collect();
        let taken: Vec<Cpu> = self.result.iter().filter_map(|cpu| self.offer.topology.get(cpu)).collect();
        let taken = count(&taken, |cpu| cpu.socket);
        let (by_socket, by_node) = (count(&free, |cpu| cpu.socket), count(&free, |cpu| cpu.node));
        let of = |counts: &BTreeMap<u32, usize>, key: u32| counts.get(&key).copied().unwrap_or(0);
        let fill = self.offer.fill;
        let mut cores: Vec<Vec<Cpu>> = grouped(&free, |cpu| cpu.core).into_values().collect();
        cores.sort_by_key(|core| {
            let Cpu { socket, node, core: number, .. } = core[0];
            let is_full =
                (Reverse(of(&taken, socket)), fill.rank(of(&by_socket, socket)), fill.rank(of(&by_node, node)));
            (is_full, core.len(), socket, self.refs(core), number)
        });
        self.spread(cores.into_iter().flatten().collect())
    }

    /// The list in sweeps, each of one CPU per core.
    fn spread(&self, cpus: Vec<Cpu>) -> Vec<Cpu> {
        if cpus.len() <= self.per_core {
            return cpus;
        }
        let mut sweeps = BTreeMap::new();
        let mut swept: Vec<(usize, Cpu)> = cpus
            .into_iter()
            .map(|cpu| {
                let sweep: &mut usize = sweeps.entry(cpu.core).or_default();
                *sweep += 1;
                (*sweep, cpu)
            })
            .collect();
        swept.sort_by_key(|(sweep, _)| *sweep);
        swept.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// How many pods have these CPUs already, where CPUs may be shared.
    fn refs(&self, cpus: &[Cpu]) -> u32 {
        if self.offer.refs_max <= 1 {
            return 0;
        }
        cpus.iter().filter_map(|cpu| self.offer.ledger.held().get(&cpu.id)).map(Held::refs).sum()
    }
}

fn grouped(cpus: &[Cpu], group: fn(&Cpu) -> u32) -> BTreeMap<u32, Vec<Cpu>> {
    let mut groups: BTreeMap<u32, Vec<Cpu>> = BTreeMap::new();
    for cpu in cpus {
        groups.entry(group(cpu)).or_default().push(*cpu);
    }
    groups
}

fn count(cpus: &[Cpu], group: fn(&Cpu) -> u32) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for cpu in cpus {
        *counts.entry(group(cpu)).or_default() += 1;
    }
    counts
}
