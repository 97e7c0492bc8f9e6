//! What pods have of the CPUs and NUMA nodes of one node (`spec/scheduler.md` 3B.8).

use std::collections::BTreeMap;

use koord_scheduling::{CpuSet, CpuTopology, NumaMask, ResourceVector};

use super::policy::Exclusive;

/// What one pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// Its own CPUs.
    pub(crate) cpus: CpuSet,
    /// What it does not share with pods that say the same.
    pub(crate) exclusive: Exclusive,
    /// What it has of each NUMA node, by their numbers.
    pub(crate) shares: Vec<(u32, ResourceVector)>,
}

/// The pods that have a CPU: how many of each exclusive policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held([u32; Exclusive::COUNT]);

/// The sum of all allocations. It does not depend on their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    cpus: BTreeMap<u32, Held>,
    shares: BTreeMap<u32, ResourceVector>,
    /// How many pods have exactly these CPUs.
    sets: BTreeMap<CpuSet, u32>,
}

/// Where pods with CPUs of their own sit on one NUMA node and where they span several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occupation {
    /// NUMA nodes with a pod that has CPUs of it alone.
    pub(crate) single: NumaMask,
    /// NUMA nodes with a pod that has CPUs of others too. A NUMA node with both counts as shared.
    pub(crate) shared: NumaMask,
}

impl Held {
    /// How many pods have it.
    pub(crate) fn refs(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Whether a pod of this policy has it.
    pub(crate) fn is_exclusive(&self, exclusive: Exclusive) -> bool {
        self.0[exclusive.index()] > 0
    }
}

impl Ledger {
    /// Adds what a pod has.
    pub(crate) fn add(&mut self, allocation: &Allocation) {
        for cpu in allocation.cpus.iter() {
            self.cpus.entry(cpu).or_default().0[allocation.exclusive.index()] += 1;
        }
        for (node, share) in &allocation.shares {
            self.shares.entry(*node).or_default().add(share);
        }
        if !allocation.cpus.is_empty() {
            *self.sets.entry(allocation.cpus.clone()).or_default() += 1;
        }
    }

    /// Takes out what was added before.
    pub(crate) fn remove(&mut self, allocation: &Allocation) {
        for cpu in allocation.cpus.iter() {
            if let Some(held) = self.cpus.get_mut(&cpu) {
                let refs = &mut held.0[allocation.exclusive.index()];
                *refs = refs.saturating_sub(1);
                if held.refs() == 0 {
                    self.cpus.remove(&cpu);
                }
            }
        }
        for (node, share) in &allocation.shares {
            if let Some(sum) = self.shares.get_mut(node) {
                sum.subtract(share);
                if sum.iter().next().is_none() {
                    self.shares.remove(node);
                }
            }
        }
        if let Some(pods) = self.sets.get_mut(&allocation.cpus) {
            *pods -= 1;
            if *pods == 0 {
                self.sets.remove(&allocation.cpus);
            }
        }
    }

    /// The CPUs that pods have.
    pub(crate) fn held(&self) -> &BTreeMap<u32, Held> {
        &self.cpus
    }

    /// How many different CPUs pods have.
    pub(crate) fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    /// What pods have of a NUMA node.
    pub(crate) fn share(&self, node: u32) -> ResourceVector {
        self.shares.get(&node).cloned().unwrap_or_default()
    }

    /// The CPUs that as many pods have as may, where those of `reused` do not count one of them.
    pub(crate) fn exhausted(&self, refs_max: u32, reused: &CpuSet) -> CpuSet {
        let is_exhausted = |(cpu, held): &(&u32, &Held)| held.refs() - u32::from(reused.contains(**cpu)) >= refs_max;
        self.cpus.iter().filter(is_exhausted).map(|(cpu, _)| *cpu).collect()
    }

    /// How pods with CPUs of their own use the NUMA nodes.
    pub(crate) fn occupation(&self, topology: &CpuTopology) -> Occupation {
        let mut occupation = Occupation::default();
        for cpus in self.sets.keys() {
            let nodes = cpus.iter().filter_map(|cpu| topology.get(cpu)).map(|cpu| cpu.node);
            let nodes = NumaMask::of(nodes).unwrap_or_default();
            let kind = if nodes.len() == 1 { &mut occupation.single } else { &mut occupation.shared };
            *kind = kind.or(nodes);
        }
        occupation
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduling::{Cpu, ResourceId};
    use proptest::prelude::*;

    use super::*;

    fn vector(cpu: i64) -> ResourceVector {
        let mut vector = ResourceVector::default();
        vector.set(ResourceId::CPU, cpu);
        vector
    }

    fn allocation() -> impl Strategy<Value = Allocation> {
        let exclusive = prop_oneof![Just(Exclusive::None), Just(Exclusive::Pcpu), Just(Exclusive::NumaNode)];
        let cpus = proptest::collection::btree_set(0..16_u32, 0..6);
        let shares = proptest::collection::vec((0..2_u32, 0..4000_i64), 0..3);
        (cpus, exclusive, shares).prop_map(|(cpus, exclusive, shares)| Allocation {
            cpus: cpus.into_iter().collect(),
            exclusive,
            shares: shares.into_iter().map(|(node, cpu)| (node, vector(cpu))).collect(),
        })
    }

    proptest! {
        #[test]
        fn what_is_added_and_removed_leaves_no_trace(
            kept in proptest::collection::vec(allocation(), 0..6),
            tried in proptest::collection::vec(allocation(), 0..6),
        ) {
            let mut ledger = Ledger::default();
            for allocation in &kept {
                ledger.add(allocation);
            }
            let before = ledger.clone();
            for allocation in &tried {
                ledger.add(allocation);
            }
            for allocation in &tried {
                ledger.remove(allocation);
            }
            prop_assert_eq!(&ledger, &before);
            let mut reversed = Ledger::default();
            for allocation in kept.iter().rev() {
                reversed.add(allocation);
            }
            prop_assert_eq!(reversed, before);
        }
    }

    #[test]
    fn a_numa_node_is_shared_as_soon_as_one_pod_spans_several() {
        let topology: CpuTopology = (0..12).map(|id| Cpu { id, core: id / 2, node: id / 4, socket: 0 }).collect();
        let mut ledger = Ledger::default();
        let mut add = |cpus: &str| {
            let allocation = Allocation { cpus: cpus.parse().unwrap(), ..Allocation::default() };
            ledger.add(&allocation);
            let Occupation { single, shared } = ledger.occupation(&topology);
            format!("{single} {shared}")
        };
        assert_eq!(["0-1", "2,4", "8-9", ""].map(&mut add), ["01 00", "01 11", "0101 11", "0101 11"]);
    }

    #[test]
    fn a_cpu_that_may_be_reused_counts_one_user_less() {
        let mut ledger = Ledger::default();
        let allocation = |cpus: &str| Allocation { cpus: cpus.parse().unwrap(), ..Allocation::default() };
        ledger.add(&allocation("0-3"));
        ledger.add(&allocation("2"));
        let exhausted = |refs_max, reused: &str| ledger.exhausted(refs_max, &reused.parse().unwrap()).to_string();
        assert_eq!((exhausted(1, ""), exhausted(1, "1-3"), exhausted(2, "")), ("0-3".into(), "0,2".into(), "2".into()));
        assert_eq!(ledger.cpu_count(), 4);
    }
}
