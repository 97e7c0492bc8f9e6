//! What nodes use, by the reports of koordlet.

use std::{cell::RefCell, cmp::Ordering, sync::Arc};

use koord_descheduler_framework::{Cluster, Node, NodeId, NodeMetric, Pod, PodId};
use koord_scheduling::{ResourceId, ResourceVector};
use koord_types::priority::PriorityClass;

use super::thresholds::{Bounds, Percent, Thresholds, share};

/// A node of which usage is known, and what it uses.
#[derive(Clone, Debug)]
pub(super) struct NodeUsage<'a> {
    pub(super) id: NodeId,
    pub(super) node: &'a Node,
    pub(super) metric: &'a NodeMetric,
    /// What percentages are shares of.
    pub(super) capacity: ResourceVector,
    pub(super) total: Usage,
    /// What its production pods use; nothing where no threshold is about that.
    pub(super) prod: Usage,
}

/// An amount of each resource, and its limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    pub(super) used: ResourceVector,
    pub(super) low: ResourceVector,
    pub(super) high: ResourceVector,
}

/// Whose usage counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// That of the node with all of its pods.
    Node,
    /// That of its production pods.
    Prod,
}

impl Scope {
    /// As reasons name it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Prod => "prod",
        }
    }

    pub(super) fn percent(self, bounds: &Bounds<'_>) -> Percent {
        match self {
            Self::Node => bounds.node,
            Self::Prod => bounds.prod,
        }
    }
}

// === impl NodeUsage ===

impl<'a> NodeUsage<'a> {
    /// What a node uses; `None` where that is not known, or was reported too long ago.
    pub(super) fn of(
        cluster: &'a Cluster,
        id: NodeId,
        now_ms: i64,
        max_age_ms: i64,
        production: Option<&Production>,
    ) -> Option<Self> {
        let (node, metric) = (cluster.node(id)?, cluster.metric(id)?);
        let (system, updated_ms) = (metric.system.as_ref()?, metric.updated_ms?);
        if now_ms.saturating_sub(updated_ms) >= max_age_ms {
            return None;
        }
        // What pods use that are gone counts until it is no longer reported.
        let mut used = system.clone();
        used.add(metric.pods_total());
        used.set(ResourceId::PODS, count(cluster.active_pods(id)));
        let prod = production.map(|production| prod_usage(cluster, id, metric, production)).unwrap_or_default();
        let total = Usage { used, ..Usage::default() };
        let prod = Usage { used: prod, ..Usage::default() };
        Some(Self { id, node, metric, capacity: capacity(cluster, id, node), total, prod })
    }

    pub(super) fn usage(&self, scope: Scope) -> &Usage {
        match scope {
            Scope::Node => &self.total,
            Scope::Prod => &self.prod,
        }
    }

    /// Sets the limits from percentages.
    pub(super) fn limit(&mut self, bounds: &[Bounds<'_>]) {
        for (bounds, id) in known(bounds) {
            let capacity = self.capacity.get(id);
            for (usage, percent) in [(&mut self.total, bounds.node), (&mut self.prod, bounds.prod)] {
                usage.low.set(id, share(percent.low, capacity));
                usage.high.set(id, share(percent.high, capacity));
            }
        }
    }

    /// The resources of which it uses too much. One that the node lacks is none of them: nothing is known of its share.
    pub(super) fn over<'b>(
        &self,
        scope: Scope,
        bounds: &'b [Bounds<'b>],
    ) -> impl Iterator<Item = (&'b Bounds<'b>, ResourceId)> {
        let usage = self.usage(scope);
        let is_over = |id: ResourceId| self.capacity.get(id) > 0 && usage.used.get(id) > usage.high.get(id);
        known(bounds).filter(move |(_, id)| is_over(*id))
    }

    pub(super) fn is_over(&self, scope: Scope, bounds: &[Bounds<'_>]) -> bool {
        self.over(scope, bounds).next().is_some()
    }

    /// Whether it uses little of each resource. One that the node lacks does not count.
    pub(super) fn is_under(&self, scope: Scope, bounds: &[Bounds<'_>]) -> bool {
        let usage = self.usage(scope);
        known(bounds).all(|(_, id)| self.capacity.get(id) <= 0 || usage.used.get(id) <= usage.low.get(id))
    }

    /// How much of what it has is used, in thousandths, as a mean by weights.
    pub(super) fn score(&self, scope: Scope, bounds: &[Bounds<'_>]) -> i64 {
        let used = &self.usage(scope).used;
        let (mut sum, mut weights) = (0_i128, 0_i128);
        for (bounds, id) in known(bounds) {
            let capacity = i128::from(self.capacity.get(id));
            let used = i128::from(used.get(id)).min(capacity);
            sum += i128::from(bounds.weight) * if capacity > 0 { used * 1000 / capacity } else { 0 };
            weights += i128::from(bounds.weight);
        }
        if weights > 0 { i64::try_from(sum / weights).unwrap_or(i64::MAX) } else { 0 }
    }

    /// A pod leaves, or comes.
    pub(super) fn change(&mut self, change: impl Fn(&mut ResourceVector), is_prod: bool) {
        change(&mut self.total.used);
        if is_prod {
            change(&mut self.prod.used);
        }
    }
}

/// What percentages are shares of: what was allocatable before an amplification. A resource that this does not name was not amplified.
fn capacity(cluster: &Cluster, id: NodeId, node: &Node) -> ResourceVector {
    let mut capacity = cluster.allocatable(id).clone();
    if let Some(raw) = &node.raw_allocatable {
        cluster.resources().known(raw).iter().for_each(|(id, amount)| capacity.set(id, amount));
    }
    capacity
}

/// What the production pods use that are on a node now.
fn prod_usage(cluster: &Cluster, id: NodeId, metric: &NodeMetric, production: &Production) -> ResourceVector {
    let (mut used, mut pods) = (ResourceVector::default(), 0);
    for (_, _, usage) in
        pods_with_usage(cluster, id, metric).filter(|(id, pod, _)| production.contains(cluster, *id, pod))
    {
        pods += 1;
        if let Some(usage) = usage {
            used.add(usage);
        }
    }
    used.set(ResourceId::PODS, count(pods));
    used
}

/// The active pods of a node, and what is reported of each; `None` where nothing is.
pub(super) fn pods_with_usage<'a>(
    cluster: &'a Cluster,
    id: NodeId,
    metric: &'a NodeMetric,
) -> impl Iterator<Item = (PodId, &'a Arc<Pod>, Option<&'a ResourceVector>)> {
    let mut reported = metric.pods().peekable();
    // Both come in the order of their keys.
    cluster.active_pods_on(id).map(move |(id, pod)| {
        let usage = loop {
            match reported.peek().map(|(key, _)| key.cmp(&&pod.key)) {
                Some(Ordering::Less) => drop(reported.next()),
                Some(Ordering::Equal) => break reported.next().map(|(_, usage)| usage),
                Some(Ordering::Greater) | None => break None,
            }
        };
        (id, pod, usage)
    })
}

/// Which pods are production pods. That follows from the equivalence class and Kubernetes' QoS class, and is found out once for pods that share both.
#[derive(Debug, Default)]
pub(super) struct Production(RefCell<Vec<Option<Known>>>);

/// Whether pods of a class with a QoS class are production pods.
type Known = (Option<Arc<str>>, bool);

impl Production {
    pub(super) fn contains(&self, cluster: &Cluster, id: PodId, pod: &Pod) -> bool {
        let (mut known, class) = (self.0.borrow_mut(), cluster.equivalence_class(id));
        if known.len() <= class {
            known.resize(cluster.equivalence_classes_max().max(class + 1), None);
        }
        match known.get_mut(class) {
            Some(Some((qos, is_prod))) if *qos == pod.state.qos => *is_prod,
            slot => {
                let is_prod = pod.priority_class() == Some(PriorityClass::Prod);
                if let Some(slot) = slot {
                    *slot = Some((pod.state.qos.clone(), is_prod));
                }
                is_prod
            }
        }
    }
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}

/// The resources that the cluster knows.
pub(super) fn known<'b>(bounds: &'b [Bounds<'b>]) -> impl Iterator<Item = (&'b Bounds<'b>, ResourceId)> {
    bounds.iter().filter_map(|bounds| Some((bounds, bounds.id?)))
}

/// The thresholds in force for nodes, whose limits are set by them.
pub(super) fn limit<'p>(cluster: &Cluster, thresholds: &'p Thresholds, nodes: &mut [NodeUsage<'_>]) -> Vec<Bounds<'p>> {
    let mean = |id: ResourceId| (mean(nodes, Scope::Node, id), mean(nodes, Scope::Prod, id));
    let bounds = thresholds.in_force(cluster.resources(), mean);
    for node in nodes {
        node.limit(&bounds);
    }
    bounds
}

/// The mean of what nodes use of a resource, in percent, over the nodes that have it.
fn mean(nodes: &[NodeUsage<'_>], scope: Scope, id: ResourceId) -> f64 {
    let having = || nodes.iter().filter(|node| node.capacity.get(id) > 0);
    let percent = |node: &NodeUsage<'_>| node.usage(scope).used.get(id) as f64 / node.capacity.get(id) as f64 * 100.0;
    let count = having().count();
    if count == 0 { 0.0 } else { having().map(percent).sum::<f64>() / count as f64 }
}
