//! The accumulator alone, as benches measure it.

use koord_scheduling::{Cpu, CpuSet, CpuTopology};

use super::{CpuPolicies, Offer, take};
use crate::numa::{
    ledger::{Ledger, NumaAllocation},
    policy::{Bind, Exclusive, Fill},
};

/// A node of two NUMA nodes with sixteen cores of two CPUs each, of which pods have some, and how a further pod wants its CPUs.
#[derive(Debug)]
pub struct CpuCase {
    topology: CpuTopology,
    ledger: Ledger,
    available: CpuSet,
    policies: CpuPolicies,
}

impl CpuCase {
    /// Pods have `held` of the CPUs. The further pod wants whole cores, or one CPU per core. If `is_exclusive`, it shares no core with
    /// these pods while there are others.
    pub fn new(held: CpuSet, by_core: bool, is_exclusive: bool) -> Self {
        let topology: CpuTopology =
            (0..64).map(|id| Cpu { id, core: id / 2, node: id / 32, socket: id / 32 }).collect();
        let bind = if by_core { Bind::FullPcpus } else { Bind::SpreadByPcpus };
        let exclusive = if is_exclusive { Exclusive::Pcpu } else { Exclusive::None };
        let available = topology.cpus().difference(&held);
        let mut ledger = Ledger::default();
        ledger.add(&NumaAllocation { cpus: held, exclusive, ..NumaAllocation::default() });
        Self { topology, ledger, available, policies: CpuPolicies { bind, exclusive } }
    }

    /// Takes so many CPUs; none where there are not enough.
    pub fn take(&self, needed: usize) -> Option<CpuSet> {
        let offer = Offer { topology: &self.topology, ledger: &self.ledger, refs_max: 1, fill: Fill::MostAllocated };
        take(offer, &self.available, needed, self.policies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_takes_the_requested_cpus_of_the_available_ones() {
        for (by_core, is_exclusive) in [(true, false), (true, true), (false, false), (false, true)] {
            let held: CpuSet = (0..4).collect();
            let case = CpuCase::new(held.clone(), by_core, is_exclusive);
            for needed in [4, 16] {
                let taken = case.take(needed).unwrap();
                assert_eq!((taken.len(), taken.common(&held)), (needed, 0));
            }
            assert_eq!(case.take(61), None);
        }
    }
}
