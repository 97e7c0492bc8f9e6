//! What a NUMA node has, and what is left of it.

use koord_scheduling::{CpuSet, ResourceId, ResourceVector};

use super::{
    ledger::Ledger,
    node::{amplify, milli},
};

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NumaZone {
    /// Its number.
    pub(crate) number: u32,
    /// What it promises.
    pub(crate) total: ResourceVector,
    /// Its CPUs; none where they are not reported.
    pub(crate) cpus: CpuSet,
    /// What pods have of it. CPUs of their own cost as many amplified ones.
    pub(crate) allocated: ResourceVector,
    /// What is left of it.
    pub(crate) free: ResourceVector,
    /// How many of its CPUs a pod may have.
    pub(crate) available: usize,
}

impl NumaZone {
    /// Brings up to date what pods have of it, and what is left.
    pub(crate) fn settle(&mut self, ledger: &Ledger, available: &CpuSet, cpu_ratio: f64) {
        self.available = self.cpus.common(available);
        self.allocated = ledger.share(self.number);
        if cpu_ratio > 1.0 {
            let bound = milli(ledger.held().keys().filter(|cpu| self.cpus.contains(**cpu)).count());
            let extra = amplify(bound, cpu_ratio) - bound;
            self.allocated.set(ResourceId::CPU, self.allocated.get(ResourceId::CPU) + extra);
        }
        self.free = ResourceVector::default();
        for (resource, total) in self.total.iter() {
            self.free.set(resource, (total - self.allocated.get(resource).max(0)).max(0));
        }
    }
}
