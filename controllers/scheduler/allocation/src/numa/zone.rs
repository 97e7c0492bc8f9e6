//! What a NUMA node has, and what is left of it.

use koord_resource::quantity::Format;
use koord_scheduling::{CpuSet, ResourceId, ResourceVector};
use smallvec::SmallVec;

use super::{
    ledger::Ledger,
    node::{amplify, milli},
};

/// The formats in which amounts of resources are written.
pub type Formats = SmallVec<[(ResourceId, Format); 2]>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumaZone {
    pub number: u32,
    pub total: ResourceVector,
    /// How that is written.
    pub formats: Formats,
    /// Its CPUs; none where they are not reported.
    pub cpus: CpuSet,
    /// What pods have of it. Beside a share of it, exclusive CPUs cost as many amplified ones.
    pub allocated: ResourceVector,
    /// What is left of it.
    pub free: ResourceVector,
    /// How many of its CPUs a pod may have.
    pub available: usize,
}

impl NumaZone {
    /// How its amount of a resource is written; none where it has nothing of it.
    pub fn format(&self, resource: ResourceId) -> Option<Format> {
        self.formats.iter().find(|(id, _)| *id == resource).map(|(_, format)| *format)
    }

    /// Brings up to date what pods have of it, and what is left.
    pub fn settle(&mut self, ledger: &Ledger, available: &CpuSet, cpu_ratio: f64) {
        self.available = self.cpus.common(available);
        self.allocated = ledger.share(self.number);
        // QUIRK: CPUs cost amplified ones where pods have a share of the NUMA node, and nothing where none has
        // (`cpus_that_are_recorded_for_no_numa_node_are_not_taken_off_one`).
        let is_recorded = self.allocated.iter().next().is_some();
        if cpu_ratio > 1.0 && is_recorded {
            let bound = milli(ledger.held().keys().filter(|cpu| self.cpus.contains(**cpu)).count());
            let extra = amplify(bound, cpu_ratio) - bound;
            self.allocated.set(ResourceId::CPU, self.allocated.get(ResourceId::CPU).saturating_add(extra));
        }
        self.free = ResourceVector::default();
        for (resource, total) in self.total.iter() {
            self.free.set(resource, total.saturating_sub(self.allocated.get(resource).max(0)).max(0));
        }
    }
}
