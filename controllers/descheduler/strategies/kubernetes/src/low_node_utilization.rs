//! Evicts pods of nodes that are overutilized while others are underutilized.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use koord_config::descheduler::LowNodeUtilizationArgs;
use koord_descheduler_framework::{
    Balance, NamespaceSelection, Pass, Plugin, ReasonCode, Refusal, Registration, StrategyError,
};

use crate::{
    ArgsError,
    node_utilization::{Drain, NodeUsage, Requests, Resources, Source, Targets, UsageSource, reason_to_do_nothing},
    selection,
};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct LowNodeUtilization {
    args: LowNodeUtilizationArgs,
    namespaces: NamespaceSelection,
}

impl LowNodeUtilization {
    /// # Errors
    ///
    /// Utilization is to be measured, and not to be taken from requests.
    pub fn new(args: LowNodeUtilizationArgs) -> Result<Self, ArgsError> {
        if args.metrics_utilization.is_some() {
            let text = "metricsUtilization: no metrics are available here; without it, what pods request counts";
            return Err(ArgsError::Unsupported(text));
        }
        let namespaces = selection::namespaces(args.evictable_namespaces.as_ref());
        Ok(Self { args, namespaces })
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
        let resources = Resources::new(cluster, &self.args.thresholds);
        let nodes: Vec<NodeUsage> = pass.nodes().iter().map(|node| resources.measure(cluster, usage, *node)).collect();
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
            per_node_max: self.args.eviction_limits.node,
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
        Registration::of(&self).balance(&self)
    }
}

impl Balance for LowNodeUtilization {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        self.run(pass, &Requests);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
