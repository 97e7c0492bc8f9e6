//! Empties nodes that are underutilized, so that an autoscaler can remove them.

use std::sync::Arc;

use koord_config::descheduler::{HighNodeEvictionMode, HighNodeUtilizationArgs};
use koord_descheduler_framework::{
    Balance, NamespaceSelection, Pass, Plugin, Pod, ReasonCode, Refusal, Registration, StrategyError,
};

use crate::{
    ArgsError,
    node_utilization::{Drain, NodeUsage, Requests, Resources, Source, Targets, UsageSource, reason_to_do_nothing},
    selection,
};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct HighNodeUtilization {
    args: HighNodeUtilizationArgs,
    namespaces: NamespaceSelection,
}

impl HighNodeUtilization {
    /// # Errors
    ///
    /// None so far: which arguments are valid is checked when they are read.
    pub fn new(args: HighNodeUtilizationArgs) -> Result<Self, ArgsError> {
        let namespaces = selection::namespaces(args.evictable_namespaces.as_ref());
        Ok(Self { args, namespaces })
    }

    /// Whether a pod is in question.
    fn check(&self, pod: &Pod) -> Result<(), ReasonCode> {
        if !self.args.eviction_modes.contains(&HighNodeEvictionMode::OnlyThresholdingResources) {
            return Ok(());
        }
        let placement = &pod.template.placement;
        let requests = |name: &String| {
            placement.requests.contains(name) && placement.requests.amount(name) > placement.overhead.amount(name)
        };
        self.args.thresholds.keys().any(requests).then_some(()).ok_or(ReasonCode::RequestsNoThresholdResource)
    }

    fn run(&self, pass: &mut Pass<'_>, usage: &dyn UsageSource) {
        let cluster = pass.cluster();
        let resources = Resources::new(cluster, &self.args.thresholds);
        let thresholds: Vec<f64> = self.args.thresholds.values().copied().collect();
        let nodes = pass.nodes().iter().filter_map(|node| usage.of_node(cluster, &resources, *node));
        let (mut sources, others): (Vec<NodeUsage>, Vec<NodeUsage>) =
            nodes.partition(|node| node.is_below(&thresholds));
        let is_schedulable = |node: &&NodeUsage| cluster.node(node.id).is_some_and(|node| !node.is_unschedulable);
        let targets = others
            .iter()
            .filter(is_schedulable)
            .filter_map(|node| Some((cluster.node(node.id)?.taints.as_slice(), node.left_of(&node.capacity))));
        let targets = Targets::new(targets);
        let not_emptied = Refusal::new(ReasonCode::NodeNotUnderutilized);
        for node in &others {
            pass.leave_node(node.id, &not_emptied);
        }
        let number_max = usize::try_from(self.args.number_of_nodes).unwrap_or(0);
        let mut refusal = reason_to_do_nothing(sources.len(), sources.len() + others.len(), number_max);
        if refusal.is_none() && targets.count() == 0 {
            refusal = Some(ReasonCode::NoTargetNodes.into());
        }
        if let Some(refusal) = refusal {
            for node in &sources {
                pass.leave_node(node.id, &refusal);
            }
            return;
        }
        let mut drain =
            Drain { resources: &resources, usage, targets, namespaces: &self.namespaces, per_node_max: None };
        sources.sort_by_key(NodeUsage::raw_sum);
        let limits: Vec<String> =
            self.args.thresholds.iter().map(|(name, percent)| format!("{percent:.1} % of {name}")).collect();
        let limits = limits.join(", ");
        for node in &sources {
            let share = |index| format!("{:.1} % of {}", node.percent(index), resources.name(index));
            let shares: Vec<String> = (0..resources.configured()).map(share).collect();
            let shares = shares.join(", ");
            let reason = ReasonCode::NodeUnderutilized
                .reason(format!("the node is at {shares} and is emptied"))
                .with("used", &shares)
                .with("thresholds", &limits);
            let source = Source { node, keep: None, reason };
            drain.run(pass, &source, |id| cluster.pod(id).map_or(Ok(()), |pod| self.check(pod)));
        }
    }
}

impl Plugin for HighNodeUtilization {
    fn name(&self) -> &'static str {
        "HighNodeUtilization"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for HighNodeUtilization {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        self.run(pass, &Requests);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
