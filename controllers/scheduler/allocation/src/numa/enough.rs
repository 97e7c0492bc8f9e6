//! Whether NUMA nodes have enough for a pod: CPUs are counted, and chosen only where it matters which (`spec/scheduler.md` 3B.5).

#[cfg(test)]
mod tests;

use koord_scheduling::{NumaMask, ResourceId};

use super::{
    allocate::{CpuOrder, Stock},
    policy::{Bind, Exclusive},
};

/// What NUMA nodes give, counted.
#[derive(Clone, Copy, Debug)]
struct Given {
    /// Those that give something of what is not CPUs alone.
    nodes: NumaMask,
    /// How many CPUs are taken of them.
    cpus: usize,
    /// Whether these are so many whole cores of each.
    are_cores: bool,
}

impl Stock<'_> {
    /// The NUMA nodes that give something to a pod that gets everything of this set, as [`Stock::allocate`] would find; none where
    /// there is too little.
    pub fn givers(&self, affinity: Option<NumaMask>) -> Option<NumaMask> {
        let given = self.given(affinity)?;
        let Some(cpu_order) = self.order.cpus else { return Some(given.nodes) };
        let is_divided = given.nodes.is_empty() || given.cpus == cpu_order.needed;
        if !(is_divided && self.has_cpus()) {
            return None;
        }
        let is_taken = if self.takes_any(&cpu_order) {
            true
        } else if !given.nodes.is_empty() && self.takes_whole_cores(&cpu_order) {
            given.are_cores
        } else {
            self.allocate(affinity).is_ok()
        };
        is_taken.then_some(given.nodes)
    }

    /// What a set gives; none where that is too little.
    fn given(&self, affinity: Option<NumaMask>) -> Option<Given> {
        let mut given = Given { nodes: NumaMask::default(), cpus: 0, are_cores: true };
        let Some(affinity) = affinity else { return Some(given) };
        if self.node.zones.is_empty() {
            return None;
        }
        for (resource, request) in self.requests() {
            let is_of_cpus = resource == ResourceId::CPU && self.order.cpus.is_some();
            let remaining = self.divide(affinity, (resource, request), |node, part| {
                given.nodes = NumaMask::of([node]).map_or(given.nodes, |node| given.nodes.or(node));
                if is_of_cpus {
                    let cpus = self.cpus_within(node, part);
                    given.cpus += cpus;
                    given.are_cores &= cpus.is_multiple_of(self.node.cpus_per_core());
                }
            });
            if remaining != 0 {
                return None;
            }
        }
        Some(given)
    }

    /// Whether any CPUs will do that the pod may have, if they are enough.
    fn takes_any(&self, cpu_order: &CpuOrder) -> bool {
        let is_choosy = cpu_order.is_required && cpu_order.policies.bind == Bind::FullPcpus;
        !is_choosy && self.limits.required.is_empty()
    }

    /// Whether the pod gets whole cores of each NUMA node before others, of a node whose cores are alike, so that only the number
    /// of CPUs decides.
    fn takes_whole_cores(&self, cpu_order: &CpuOrder) -> bool {
        let [_, nodes, _, cpus] = self.node.cpus.counts();
        let is_plain = cpu_order.policies.exclusive == Exclusive::None && self.node.refs_max <= 1;
        let is_free = self.limits.required.is_empty() && self.limits.preferred.is_empty();
        is_plain && is_free && self.node.cpus.has_even_cores() && cpu_order.needed <= cpus / nodes.max(1)
    }
}
