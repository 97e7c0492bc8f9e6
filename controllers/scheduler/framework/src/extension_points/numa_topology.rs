//! The topology manager and the plugins that give it hints: all resources of a pod on the same NUMA nodes.

use std::collections::BTreeSet;

use koord_scheduling::NumaMask;

use super::{AllocationSource, Reason, Request};
use crate::{cluster::Cluster, columns::Row};

/// Gives the topology manager hints about what it allocates to pods.
pub trait NumaHintProvider: Send + Sync + 'static {
    /// Prepares for a pod; `None` where the pod requests nothing of the plugin.
    fn prepare_numa_hints(&self, request: &Request<'_>) -> Option<Box<dyn NodeNumaHints>>;
}

/// Hints about one pod on any node.
pub trait NodeNumaHints: Send + Sync {
    /// The sets of at most `nodes_max` NUMA nodes that have what the pod requests of the plugin. Reasons where there are none.
    fn hints(
        &self,
        cluster: &Cluster,
        row: Row,
        nodes_max: u32,
        source: &AllocationSource,
    ) -> Result<NumaHints, Vec<Reason>>;

    /// Whether the pod gets what it requests of these NUMA nodes, or of any for `None`; reasons otherwise.
    fn verify(
        &self,
        cluster: &Cluster,
        row: Row,
        affinity: Option<NumaMask>,
        source: &AllocationSource,
    ) -> Result<(), Vec<Reason>>;
}

/// The hints of a plugin: the same for each of these resources. No resources where the NUMA nodes do not matter to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaHints {
    /// The names of resources.
    pub resources: BTreeSet<String>,
    /// Sets of NUMA nodes, the narrowest first.
    pub hints: Vec<NumaHint>,
}

/// A set of NUMA nodes that has what a pod requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumaHint {
    pub nodes: NumaMask,
    /// Whether no smaller set has it.
    pub is_preferred: bool,
    /// Among sets of the same size the highest is best.
    pub score: i64,
}

/// Chooses the NUMA nodes of a pod by the hints of all plugins.
pub trait NumaTopologyManager: Send + Sync + 'static {
    /// Prepares for a pod; `None` where no NUMA nodes are chosen for it.
    fn prepare_numa_affinity(&self, request: &Request<'_>) -> Option<Box<dyn NodeNumaAffinity>>;
}

/// The NUMA affinity of one pod on any node.
pub trait NodeNumaAffinity: Send + Sync {
    /// The NUMA nodes from which the pod would get everything. `None` where it does not matter which, and where they are chosen later.
    fn affinity(&self, cluster: &Cluster, row: Row) -> Option<NumaMask>;
}

/// The NUMA nodes that were chosen for a pod in Reserve: a hold of the topology manager, which the plugins that reserve after it follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedNumaAffinity(pub NumaMask);
