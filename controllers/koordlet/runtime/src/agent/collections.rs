//! How often CPUs, NUMA nodes and disks of the node were looked at, and whether that succeeded.

use super::Agent;
use crate::host::Host;

/// Counts by what was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Collections {
    cpus: Counts,
    pub(super) numa_nodes: Counts,
    pub(super) disks: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    succeeded: u64,
    failed: u64,
}

impl Counts {
    pub(super) fn count(&mut self, is_found: bool) {
        if is_found { self.succeeded += 1 } else { self.failed += 1 }
    }
}

impl Collections {
    /// CPUs do not change while the agent runs, and are looked at when it starts.
    pub(super) fn of_start(host: &Host) -> Self {
        let mut collections = Self::default();
        collections.cpus.count(!host.machine.topology.cpus().is_empty());
        collections
    }
}

impl Agent {
    /// Metrics of what was looked at, with status and count; none before the node is known.
    pub fn collections(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let Collections { cpus, numa_nodes, disks } = self.collections;
        let families = [
            ("koordlet_collect_node_cpu_info_status", cpus),
            ("koordlet_collect_node_numa_info_status", numa_nodes),
            ("koordlet_collect_node_local_storage_info_status", disks),
        ];
        let is_known = self.node.is_some();
        families
            .into_iter()
            .flat_map(|(name, counts)| [(name, "succeeded", counts.succeeded), (name, "failed", counts.failed)])
            .filter(move |(_, _, count)| is_known && *count > 0)
    }
}
