//! Plugins beside this one that allocate from NUMA nodes: all of them must find what a pod requests on the same ones (`spec/scheduler.md` 2.12 and 3F.6).

use koord_scheduler_allocation::numa::topology_manager::{Provider, TopologyHint, TopologyHints};
use koord_scheduler_framework::{
    AllocationSource, NodeNumaHints, NumaHint, NumaHints, Reason, cluster::Cluster, columns::Row,
};
use koord_scheduling::NumaMask;

/// The hints of another plugin about one node.
pub(super) struct OtherPlugin<'a> {
    pub(super) hints: &'a dyn NodeNumaHints,
    pub(super) cluster: &'a Cluster,
    pub(super) row: Row,
    pub(super) source: &'a AllocationSource,
}

impl Provider for OtherPlugin<'_> {
    fn hints<'a>(&'a self, nodes_max: u32, into: &mut TopologyHints<'a>) -> Result<(), Vec<Reason>> {
        let NumaHints { resources, hints } = self.hints.hints(self.cluster, self.row, nodes_max, self.source)?;
        for resource in resources {
            let hint = |hint: &NumaHint| TopologyHint {
                affinity: Some(hint.nodes),
                is_preferred: hint.is_preferred,
                score: hint.score,
                is_unsatisfied: false,
            };
            into.add(resource, hints.iter().map(hint));
        }
        Ok(())
    }

    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>> {
        self.hints.verify(self.cluster, self.row, affinity, self.source)
    }
}
