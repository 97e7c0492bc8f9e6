//! What pods have of the CPUs and NUMA nodes of one node (`spec/scheduler.md` 3B.8).

use std::collections::BTreeMap;

use koord_scheduling::{CpuSet, CpuTopology, NumaMask, ResourceVector};

use super::policy::Exclusive;

/// What one pod has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaAllocation {
    pub cpus: CpuSet,
    /// What it does not share with pods that say the same.
    pub exclusive: Exclusive,
    /// What it has of each NUMA node, by their numbers.
    pub shares: Vec<(u32, ResourceVector)>,
}

/// The pods that have a CPU: how many of each exclusive policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held([u32; Exclusive::COUNT]);

/// The sum of all allocations. It does not depend on their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    cpus: BTreeMap<u32, Held>,
    /// The CPUs that pods of each exclusive policy have.
    by_policy: [CpuSet; Exclusive::COUNT],
    shares: BTreeMap<u32, ResourceVector>,
    /// How many pods have exactly these CPUs.
    sets: BTreeMap<CpuSet, u32>,
}

/// Where pods with exclusive CPUs sit on one NUMA node and where they span several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupation {
    /// NUMA nodes with a pod that has CPUs of it alone.
    pub single: NumaMask,
    /// NUMA nodes with a pod that has CPUs of others too. A NUMA node with both counts as shared.
    pub shared: NumaMask,
}

impl NumaAllocation {
    /// The part that others have too.
    pub fn shared_with(&self, others: &[Self]) -> Self {
        let cpus = others.iter().fold(CpuSet::default(), |sum, other| sum.union(&other.cpus));
        let of_others = |node: u32| {
            let shares = others.iter().flat_map(|other| &other.shares).filter(move |(at, _)| *at == node);
            shares.fold(ResourceVector::default(), |mut sum, (_, share)| {
                sum.add(share);
                sum
            })
        };
        let share = |(node, share): &(u32, ResourceVector)| {
            let mut both = share.clone();
            both.minimise(&of_others(*node));
            (*node, both)
        };
        let shares = self.shares.iter().map(share).filter(|(_, share)| share.iter().next().is_some()).collect();
        Self { cpus: self.cpus.intersection(&cpus), exclusive: self.exclusive, shares }
    }

    /// What is left without a part of it.
    pub fn without(&self, part: &Self) -> Self {
        let share = |(node, share): &(u32, ResourceVector)| {
            let mut left = share.clone();
            part.shares.iter().filter(|(at, _)| at == node).for_each(|(_, part)| left.subtract(part));
            (*node, left)
        };
        let shares = self.shares.iter().map(share).filter(|(_, share)| share.iter().next().is_some()).collect();
        Self { cpus: self.cpus.difference(&part.cpus), exclusive: self.exclusive, shares }
    }
}

impl Held {
    /// How many pods have it.
    pub fn refs(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Whether a pod of this policy has it.
    pub fn is_exclusive(&self, exclusive: Exclusive) -> bool {
        self.0[exclusive.index()] > 0
    }
}

impl Ledger {
    /// Adds what a pod has.
    pub fn add(&mut self, allocation: &NumaAllocation) {
        for cpu in allocation.cpus.iter() {
            self.cpus.entry(cpu).or_default().0[allocation.exclusive.index()] += 1;
        }
        self.by_policy[allocation.exclusive.index()].insert_all(&allocation.cpus);
        self.share_out(allocation, ResourceVector::add);
        if !allocation.cpus.is_empty() {
            *self.sets.entry(allocation.cpus.clone()).or_default() += 1;
        }
    }

    /// Takes out what was added before.
    pub fn remove(&mut self, allocation: &NumaAllocation) {
        let mut given_back = CpuSet::default();
        for cpu in allocation.cpus.iter() {
            if let Some(held) = self.cpus.get_mut(&cpu) {
                let refs = &mut held.0[allocation.exclusive.index()];
                *refs = refs.saturating_sub(1);
                if *refs == 0 {
                    given_back.insert(cpu);
                }
                if held.refs() == 0 {
                    self.cpus.remove(&cpu);
                }
            }
        }
        self.by_policy[allocation.exclusive.index()].remove_all(&given_back);
        self.share_out(allocation, ResourceVector::subtract);
        if let Some(pods) = self.sets.get_mut(&allocation.cpus) {
            *pods -= 1;
            if *pods == 0 {
                self.sets.remove(&allocation.cpus);
            }
        }
    }

    /// A NUMA node of which pods have nothing is left out.
    fn share_out(&mut self, allocation: &NumaAllocation, change: impl Fn(&mut ResourceVector, &ResourceVector)) {
        for (node, share) in &allocation.shares {
            let sum = self.shares.entry(*node).or_default();
            change(sum, share);
            if sum.iter().next().is_none() {
                self.shares.remove(node);
            }
        }
    }

    /// What it amounts to, in words.
    pub fn words(&self) -> String {
        let pods: u32 = self.sets.values().sum();
        format!("{} CPUs of {pods} pods and shares of {} NUMA nodes", self.cpus.len(), self.shares.len())
    }

    /// The CPUs that pods have.
    pub fn held(&self) -> &BTreeMap<u32, Held> {
        &self.cpus
    }

    /// The CPUs that pods of an exclusive policy have.
    pub fn held_by(&self, exclusive: Exclusive) -> &CpuSet {
        &self.by_policy[exclusive.index()]
    }

    /// How many different CPUs pods have.
    pub fn cpu_count(&self) -> usize {
        self.cpus.len()
    }

    /// What pods have of a NUMA node.
    pub fn share(&self, node: u32) -> ResourceVector {
        self.shares.get(&node).cloned().unwrap_or_default()
    }

    /// The CPUs that as many pods have as may.
    pub fn exhausted(&self, refs_max: u32) -> CpuSet {
        if refs_max <= 1 {
            return self.by_policy.iter().fold(CpuSet::default(), |sum, cpus| sum.union(cpus));
        }
        self.cpus.iter().filter(|(_, held)| held.refs() >= refs_max).map(|(cpu, _)| *cpu).collect()
    }

    /// How pods with exclusive CPUs use the NUMA nodes.
    pub fn occupation(&self, topology: &CpuTopology) -> Occupation {
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

    fn allocation() -> impl Strategy<Value = NumaAllocation> {
        let exclusive = prop_oneof![Just(Exclusive::None), Just(Exclusive::Pcpu), Just(Exclusive::NumaNode)];
        let cpus = proptest::collection::btree_set(0..16_u32, 0..6);
        let shares = proptest::collection::vec((0..2_u32, 0..4000_i64), 0..3);
        (cpus, exclusive, shares).prop_map(|(cpus, exclusive, shares)| NumaAllocation {
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
            for exclusive in [Exclusive::None, Exclusive::Pcpu, Exclusive::NumaNode] {
                let of_policy = ledger.held().iter().filter(|(_, held)| held.is_exclusive(exclusive));
                prop_assert_eq!(ledger.held_by(exclusive), &of_policy.map(|(cpu, _)| *cpu).collect());
            }
            prop_assert_eq!(ledger.exhausted(1), ledger.held().keys().copied().collect());
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
    fn a_share_of_nothing_leaves_no_trace_whoever_goes_first() {
        let share = |cpu: i64| NumaAllocation { shares: vec![(0, vector(cpu))], ..NumaAllocation::default() };
        let mut ledger = Ledger::default();
        ledger.add(&share(0));
        assert_eq!(ledger, Ledger::default());
        for cpu in [4, -4] {
            ledger.add(&share(cpu));
        }
        ledger.remove(&share(4));
        assert_eq!(ledger.share(0).get(ResourceId::CPU), -4);
    }

    #[test]
    fn a_numa_node_is_shared_as_soon_as_one_pod_spans_several() {
        let topology: CpuTopology = (0..12).map(|id| Cpu { id, core: id / 2, node: id / 4, socket: 0 }).collect();
        let mut ledger = Ledger::default();
        let mut add = |cpus: &str| {
            let allocation = NumaAllocation { cpus: cpus.parse().unwrap(), ..NumaAllocation::default() };
            ledger.add(&allocation);
            let Occupation { single, shared } = ledger.occupation(&topology);
            format!("{single} {shared}")
        };
        assert_eq!(["0-1", "2,4", "8-9", ""].map(&mut add), ["01 00", "01 11", "0101 11", "0101 11"]);
    }

    #[test]
    fn owners_allocate_a_part_of_a_reservation_and_the_rest_stays_reserved() {
        let allocation = |cpus: &str, shares: &[(u32, i64)]| NumaAllocation {
            cpus: cpus.parse().unwrap(),
            shares: shares.iter().map(|(node, cpu)| (*node, vector(*cpu))).collect(),
            ..NumaAllocation::default()
        };
        let kept = allocation("0-3", &[(0, 4000), (1, 1000)]);
        let owners = [allocation("0-1", &[(0, 2000)]), allocation("3-4", &[(0, 2500), (1, 500)])];
        let both = kept.shared_with(&owners);
        assert_eq!(both, allocation("0-1,3", &[(0, 4000), (1, 500)]));
        assert_eq!(kept.without(&both), allocation("2", &[(1, 500)]));
        let mut ledger = Ledger::default();
        owners.iter().chain([&kept]).for_each(|allocation| ledger.add(allocation));
        assert_eq!((ledger.exhausted(1).to_string(), ledger.exhausted(2).to_string()), ("0-4".into(), "0-1,3".into()));
        ledger.remove(&both);
        assert_eq!(
            (ledger.share(0), ledger.share(1), ledger.exhausted(2)),
            (vector(4500), vector(1000), CpuSet::default())
        );
    }
}
