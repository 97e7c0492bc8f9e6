//! Evicts pods of nodes that are overutilized while others are underutilized.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use koord_config::descheduler::{LowNodeUtilizationArgs, MetricsSource};
use koord_descheduler_framework::{
    Balance, Cluster, Measured, MeasuredUsage, NamespaceSelection, NodeId, Pass, Plugin, ReasonCode, Refusal,
    Registration, StrategyError, UsageQuery,
};

use crate::{
    ArgsError,
    node_utilization::{
        Amounts, Drain, NodeUsage, Requests, Resources, Shares, Source, Targets, UsageSource, reason_to_do_nothing,
    },
    selection,
};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct LowNodeUtilization {
    args: LowNodeUtilizationArgs,
    namespaces: NamespaceSelection,
    /// Who measures usage; `None` where requests are taken for it.
    query: Option<UsageQuery>,
}

impl LowNodeUtilization {
    /// # Errors
    ///
    /// None so far: which arguments are valid is checked when they are read.
    pub fn new(args: LowNodeUtilizationArgs) -> Result<Self, ArgsError> {
        let query = args.metrics_utilization.as_ref().map(|metrics| match metrics.source {
            Some(MetricsSource::Prometheus) => {
                let query = metrics.prometheus.as_ref().map_or("", |prometheus| &prometheus.query);
                UsageQuery::Prometheus(query.into())
            }
            Some(MetricsSource::KubernetesMetrics) | None => UsageQuery::KubernetesMetrics,
        });
        let namespaces = selection::namespaces(args.evictable_namespaces.as_ref());
        Ok(Self { args, namespaces, query })
    }

    /// The resources that are looked at: those with thresholds and, unless a query measures something else, cpu, memory and pods.
    fn resources(&self, cluster: &Cluster) -> Resources<'_> {
        match self.query {
            Some(UsageQuery::Prometheus(_)) => Resources::configured_alone(cluster, &self.args.thresholds),
            Some(UsageQuery::KubernetesMetrics) | None => Resources::new(cluster, &self.args.thresholds),
        }
    }

    /// The most pods that leave a node. Where pods are not measured nobody can say when the node is relieved, and one goes unless a limit is configured.
    fn per_node_max(&self) -> Option<u32> {
        let is_unmeasured = matches!(self.query, Some(UsageQuery::Prometheus(_)));
        self.args.eviction_limits.node.or(is_unmeasured.then_some(1))
    }

    /// At or below the first of these percentages a node is underutilized, above the second it is overutilized.
    fn bounds(&self, resources: &Resources<'_>, nodes: &[NodeUsage]) -> [Vec<f64>; 2] {
        let values = |thresholds: &BTreeMap<String, f64>| thresholds.values().copied().collect::<Vec<_>>();
        let (low, high) = (values(&self.args.thresholds), values(&self.args.target_thresholds));
        if !self.args.use_deviation_thresholds {
            return [low, high];
        }
        let average = resources.average(nodes);
        let from_average = |distances: Vec<f64>, sign: f64| {
            let distances = average.iter().zip(distances);
            distances.map(|(average, distance)| (average + sign * distance).clamp(0.0, 100.0)).collect()
        };
        [from_average(low, -1.0), from_average(high, 1.0)]
    }

    fn run(&self, pass: &mut Pass<'_>, usage: &dyn UsageSource) {
        let cluster = pass.cluster();
        let resources = self.resources(cluster);
        let nodes = pass.nodes().iter().filter_map(|node| usage.of_node(cluster, &resources, *node));
        let nodes: Vec<NodeUsage> = nodes.collect();
        if pass.wants_verdicts() && nodes.len() < pass.nodes().len() {
            for node in pass.nodes().iter().filter(|id| nodes.iter().all(|node| node.id != **id)) {
                pass.leave_node(*node, &ReasonCode::NodeUsageUnknown.into());
            }
        }
        let [low, high] = self.bounds(&resources, &nodes);
        let is_schedulable = |node: &NodeUsage| cluster.node(node.id).is_some_and(|node| !node.is_unschedulable);
        let (mut under, mut over) = (Vec::new(), Vec::new());
        for node in &nodes {
            if is_schedulable(node) && node.is_below(&low) {
                under.push(node);
            } else if let Some(resource) = node.exceeded(&high) {
                over.push((node, resource));
            }
        }
        let is_over = |node: &NodeUsage| over.iter().any(|(over, _)| over.id == node.id);
        let number_max = usize::try_from(self.args.number_of_nodes).unwrap_or(0);
        if let Some(refusal) = reason_to_do_nothing(under.len(), nodes.len(), number_max) {
            for node in &nodes {
                pass.leave_node(node.id, &refusal);
            }
            return;
        }
        if pass.wants_verdicts() {
            let refusal = Refusal::new(ReasonCode::NodeNotOverutilized);
            for node in nodes.iter().filter(|node| !is_over(node)) {
                pass.leave_node(node.id, &refusal);
            }
        }
        let targets = under.iter().filter_map(|node| {
            let left = node.left_of(&node.capped(&high));
            Some((cluster.node(node.id)?.taints.as_slice(), left))
        });
        let mut drain = Drain {
            resources: &resources,
            usage,
            targets: Targets::new(targets),
            namespaces: &self.namespaces,
            per_node_max: self.per_node_max(),
        };
        over.sort_by_key(|(node, _)| Reverse(node.raw_sum()));
        for (node, resource) in over {
            let (name, percent, target) = (resources.name(resource), node.percent(resource), high[resource]);
            let reason = ReasonCode::NodeOverutilized
                .reason(format!("the node is at {percent:.1} % of {name}, above {target:.1} %"))
                .with("resource", name)
                .with("percent", format_args!("{percent:.1}"))
                .with("target", format_args!("{target:.1}"));
            let source = Source { node, keep: Some(node.capped(&high)), reason };
            drain.run(pass, &source, |_| Ok(()));
        }
    }
}

impl Plugin for LowNodeUtilization {
    fn name(&self) -> &'static str {
        "LowNodeUtilization"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self).measured(&self)
    }
}

impl Balance for LowNodeUtilization {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let Some(query) = &self.query else {
            self.run(pass, &Requests);
            return Ok(());
        };
        match pass.cluster().measured_usage(query) {
            Ok(MeasuredUsage::Amounts { nodes, pods }) => self.run(pass, &Amounts { nodes, pods }),
            Ok(MeasuredUsage::Shares(shares)) => self.run(pass, &Shares(shares)),
            Err(reason) => {
                let refusal = Refusal::new(ReasonCode::NodeUsageUnknown).with("reason", Arc::<str>::from(reason));
                for node in pass.nodes() {
                    pass.leave_node(*node, &refusal);
                }
                return Err(StrategyError(format!("usage is not known from {query}: {reason}")));
            }
        }
        Ok(())
    }
}

impl Measured for LowNodeUtilization {
    fn usage_query(&self) -> Option<UsageQuery> {
        self.query.clone()
    }

    fn nodes_to_relieve(&self, cluster: &Cluster) -> Vec<NodeId> {
        let Some(Ok(MeasuredUsage::Amounts { nodes, pods })) =
            self.query.as_ref().map(|query| cluster.measured_usage(query))
        else {
            return Vec::new();
        };
        let (resources, usage) = (self.resources(cluster), Amounts { nodes, pods });
        let known = cluster.nodes().filter_map(|(id, _)| usage.of_node(cluster, &resources, id));
        if self.args.use_deviation_thresholds {
            // Which nodes are averaged depends on the profile.
            return known.map(|node| node.id).collect();
        }
        let high: Vec<f64> = self.args.target_thresholds.values().copied().collect();
        known.filter(|node| !node.is_below(&high)).map(|node| node.id).collect()
    }
}

#[cfg(test)]
mod tests;
