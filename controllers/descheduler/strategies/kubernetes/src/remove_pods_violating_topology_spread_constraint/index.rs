//! The nodes and pods of a pass, by what spreading depends on.

use std::collections::BTreeMap;

use koord_descheduler_framework::{Cluster, NodeId, PodId};

/// The nodes and pods of a pass.
pub(super) struct Index<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) nodes: &'a [NodeId],
    /// By the number of a class: its pods that count, each with the position of its node.
    pub(super) pods: Vec<Vec<(PodId, usize)>>,
    topologies: BTreeMap<&'a str, usize>,
    by_number: Vec<Topology<'a>>,
}

/// The domains that a label of nodes makes.
pub(super) struct Topology<'a> {
    /// The values of the label, sorted.
    pub(super) values: Vec<&'a str>,
    /// By the position of a node: the number of its value.
    of_node: Vec<Option<usize>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(cluster: &'a Cluster, nodes: &'a [NodeId]) -> Self {
        let sizes = (0..cluster.equivalence_classes_max()).map(|class| cluster.equivalence_class_size(class));
        let pods = sizes.map(Vec::with_capacity).collect();
        Self { cluster, nodes, pods, topologies: BTreeMap::new(), by_number: Vec::new() }
    }

    /// The number of the topology of a label.
    pub(super) fn topology_of(&mut self, key: &'a str) -> usize {
        if let Some(number) = self.topologies.get(key) {
            return *number;
        }
        let of_node = |id: &NodeId| self.cluster.node(*id).and_then(|node| node.label(key));
        let of_nodes: Vec<Option<&str>> = self.nodes.iter().map(of_node).collect();
        let mut values: Vec<&str> = of_nodes.iter().flatten().copied().collect();
        values.sort_unstable();
        values.dedup();
        let of_node = of_nodes.iter().map(|value| values.binary_search(&(*value)?).ok()).collect();
        let number = self.by_number.len();
        self.by_number.push(Topology { values, of_node });
        self.topologies.insert(key, number);
        number
    }

    pub(super) fn topology(&self, number: usize) -> &Topology<'a> {
        &self.by_number[number]
    }

    /// The pods of a class.
    pub(super) fn pods_of(&self, class: usize) -> &[(PodId, usize)] {
        self.pods.get(class).map_or(&[], Vec::as_slice)
    }
}

impl Topology<'_> {
    /// The domain of the node at a position; `None` where it lacks the label.
    pub(super) fn domain(&self, at: usize) -> Option<usize> {
        self.of_node.get(at).copied().flatten()
    }
}
