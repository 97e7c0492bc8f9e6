//! The cluster's network as Coscheduling keeps it: its tree, and where the pods are that others are to be near to (2.13).

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use koord_scheduler_framework::{
    NodeScore,
    cluster::{Cluster, Placed},
    columns::Row,
    lowest_is_best, normalize,
    pod::Template,
};
use koord_types::{cluster_network_topology::ClusterNetworkTopology, pod_annotations::NETWORK_TOPOLOGY_SELECTOR};

use super::{context::Context, topology::Tree};

/// The ClusterNetworkTopology that counts.
pub(super) const DEFAULT: &str = "default";

/// The tree, and the pods with a network-topology-selector.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Made when it is asked for.
    tree: OnceLock<Option<Arc<Tree>>>,
    /// By selector.
    near: Near,
}

/// By selector, how many pods each row has.
type Near = BTreeMap<Arc<str>, BTreeMap<Row, usize>>;

impl Network {
    /// The tree of the nodes; none without a ClusterNetworkTopology.
    pub(super) fn tree(&self, cluster: &Cluster) -> Option<&Arc<Tree>> {
        let tree = self.tree.get_or_init(|| {
            let topology = cluster.objects().get::<ClusterNetworkTopology>(DEFAULT)?;
            let nodes = cluster.rows().map(|(_, node)| (&*node.name, &node.labels));
            Tree::new(&topology.spec, nodes).map(Arc::new)
        });
        tree.as_ref()
    }

    /// A node or the ClusterNetworkTopology has changed.
    pub(super) fn changed(&mut self) {
        self.tree = OnceLock::new();
    }

    /// A pod has its place, or has lost it.
    pub(super) fn count(&mut self, placed: &Placed, is_added: bool) {
        let Some(selector) = selector(placed.class.template()) else { return };
        let rows = self.near.entry(selector.into()).or_default();
        let pods = rows.entry(placed.row).or_default();
        *pods = if is_added { *pods + 1 } else { pods.saturating_sub(1) };
        if *pods == 0 {
            rows.remove(&placed.row);
        }
        if rows.is_empty() {
            self.near.remove(selector);
        }
    }

    /// Compares how many pods of each row have a selector with the pods in their places, and sets right what differs.
    pub(super) fn audit(&mut self, cluster: &Cluster) -> Option<String> {
        let mut actual = Self::default();
        cluster.pods().for_each(|placed| actual.count(placed, true));
        if self.near == actual.near {
            return None;
        }
        let words = |near: &Near| {
            let pods: usize = near.values().flat_map(BTreeMap::values).sum();
            format!("{pods} pods with {} selectors", near.len())
        };
        let details = format!("{} instead of {}", words(&self.near), words(&actual.near));
        self.near = actual.near;
        Some(details)
    }

    /// How many pods of a node have this selector.
    pub(super) fn near(&self, selector: Option<&str>, row: Row) -> usize {
        let rows = selector.and_then(|selector| self.near.get(selector));
        rows.and_then(|rows| rows.get(&row)).copied().unwrap_or(0)
    }
}

/// The pods that a pod is to be near to have the same selector as itself.
pub(super) fn selector(template: &Template) -> Option<&str> {
    template.annotations.get(NETWORK_TOPOLOGY_SELECTOR.name()).filter(|selector| !selector.is_empty())
}

/// Prefers nodes near to the pods with the same selector (3E.7).
pub(super) struct Nearness {
    pub(super) selector: String,
    pub(super) tree: Arc<Tree>,
    pub(super) ranks: BTreeMap<Row, i64>,
}

impl NodeScore for Nearness {
    fn compare(&mut self, cluster: &Cluster, rows: &[Row]) {
        let network = cluster.state::<Context>().map(|context| &context.network);
        let near = |node: &str| {
            let row = cluster.row(node);
            row.and_then(|row| Some(network?.near(Some(&self.selector), row))).unwrap_or(0)
        };
        let known: Vec<(Row, &str)> = rows.iter().filter_map(|row| Some((*row, &*cluster.node(*row)?.name))).collect();
        let names: Vec<&str> = known.iter().map(|(_, name)| *name).collect();
        let ranks = self.tree.ranks(&names, near);
        let ranks = ranks.into_iter().map(|rank| i64::try_from(rank).unwrap_or(i64::MAX));
        self.ranks = known.into_iter().map(|(row, _)| row).zip(ranks).collect();
    }

    fn score(&self, _: &Cluster, row: Row) -> i64 {
        self.ranks.get(&row).copied().unwrap_or(0)
    }

    fn normalize(&self, scores: &mut [i64]) {
        normalize(scores, lowest_is_best);
    }

    fn is_local(&self) -> bool {
        false
    }
}
