//! What nodes use, in amounts and in percent.

use std::collections::BTreeMap;

use koord_descheduler_framework::{Cluster, NodeId};
use koord_scheduling::{ResourceId, ResourceVector};

/// The resources that count: first those that have thresholds, then cpu, memory and pods.
#[derive(Debug)]
pub(crate) struct Resources<'a> {
    names: Vec<&'a str>,
    /// `None` for a resource that neither a node nor a pod names.
    ids: Vec<Option<ResourceId>>,
    /// How many have thresholds.
    configured: usize,
}

/// What a node uses, by the order of [`Resources`].
#[derive(Clone, Debug)]
pub(crate) struct NodeUsage {
    pub(crate) id: NodeId,
    pub(crate) usage: Vec<i64>,
    pub(crate) capacity: Vec<i64>,
    /// Of the resources that have thresholds; `None` for what the node does not have.
    percent: Vec<Option<f64>>,
}

impl<'a> Resources<'a> {
    pub(crate) fn new(cluster: &Cluster, thresholds: &'a BTreeMap<String, f64>) -> Self {
        let others = ["cpu", "memory", "pods"].into_iter().filter(|name| !thresholds.contains_key(*name));
        Self::of(cluster, thresholds, others)
    }

    /// Those that have thresholds alone.
    pub(crate) fn configured_alone(cluster: &Cluster, thresholds: &'a BTreeMap<String, f64>) -> Self {
        Self::of(cluster, thresholds, [])
    }

    fn of(cluster: &Cluster, thresholds: &'a BTreeMap<String, f64>, others: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<&str> = thresholds.keys().map(String::as_str).collect();
        let configured = names.len();
        names.extend(others);
        let ids = names.iter().map(|name| cluster.resources().get(name)).collect();
        Self { names, ids, configured }
    }

    /// How many of the resources have thresholds; they come first.
    pub(crate) fn configured(&self) -> usize {
        self.configured
    }

    pub(crate) fn name(&self, index: usize) -> &'a str {
        self.names.get(index).copied().unwrap_or_default()
    }

    /// The amounts of a vector.
    pub(crate) fn amounts(&self, vector: &ResourceVector) -> Vec<i64> {
        self.ids.iter().map(|id| id.map_or(0, |id| vector.get(id))).collect()
    }

    /// A node with what it uses.
    pub(crate) fn measure(&self, cluster: &Cluster, node: NodeId, usage: &ResourceVector) -> NodeUsage {
        let reported = cluster.node(node);
        let usage = self.amounts(usage);
        // A node that does not say what is allocatable lets all of its capacity be used.
        let given = reported.map(|node| if node.allocatable.is_empty() { &node.capacity } else { &node.allocatable });
        let capacity = match reported {
            Some(node) if node.allocatable.is_empty() => self.amounts(&cluster.resources().known(&node.capacity)),
            _ => self.amounts(cluster.allocatable(node)),
        };
        let percent = self.names.iter().take(self.configured).enumerate().map(|(index, name)| {
            let (used, capacity) = (usage[index] as f64, capacity[index] as f64);
            let percent = if capacity > 0.0 { used / capacity * 100.0 } else { 0.0 };
            given.is_some_and(|given| given.contains(name)).then_some(percent)
        });
        let percent = percent.collect();
        NodeUsage { id: node, usage, capacity, percent }
    }

    /// What is used on average, in percent, over the nodes that have the resource; 0 where none has it.
    pub(crate) fn average(&self, nodes: &[NodeUsage]) -> Vec<f64> {
        let average = |index: usize| {
            let known = || nodes.iter().filter_map(|node| node.percent[index]);
            let count = known().count();
            if count == 0 { 0.0 } else { known().sum::<f64>() / count as f64 }
        };
        (0..self.configured).map(average).collect()
    }
}

impl NodeUsage {
    /// A node of which it is known how much of it is used, and of what not.
    pub(crate) fn of_percent(id: NodeId, percent: i64) -> Self {
        Self { id, usage: vec![percent], capacity: vec![100], percent: vec![Some(percent as f64)] }
    }

    /// What pods may use of it at most: these percentages of the resources that have thresholds, and all of the others.
    pub(crate) fn capped(&self, thresholds: &[f64]) -> Vec<i64> {
        let capped = |(index, capacity): (usize, &i64)| match thresholds.get(index) {
            Some(percent) => (percent * 0.01 * *capacity as f64) as i64,
            None => *capacity,
        };
        self.capacity.iter().enumerate().map(capped).collect()
    }

    /// What is left of these amounts.
    pub(crate) fn left_of(&self, amounts: &[i64]) -> Vec<i64> {
        amounts.iter().zip(&self.usage).map(|(amount, usage)| amount.saturating_sub(*usage)).collect()
    }

    pub(crate) fn percent(&self, index: usize) -> f64 {
        self.percent.get(index).copied().flatten().unwrap_or(0.0)
    }

    /// Whether it is at or below all of the thresholds. Of a resource that it does not have it uses nothing.
    pub(crate) fn is_below(&self, thresholds: &[f64]) -> bool {
        self.exceeded(thresholds).is_none()
    }

    /// The first resource of which it uses more than the threshold.
    pub(crate) fn exceeded(&self, thresholds: &[f64]) -> Option<usize> {
        thresholds.iter().enumerate().position(|(index, threshold)| self.percent(index) > *threshold)
    }

    /// The order in which nodes are descheduled.
    ///
    /// QUIRK: amounts of different units are added, so that bytes of memory decide
    /// (`the_node_that_uses_more_memory_is_relieved_first`).
    pub(crate) fn raw_sum(&self) -> i64 {
        self.usage.iter().fold(0, |sum, amount| sum.saturating_add(*amount))
    }
}
