//! Relieves nodes that use too much, by what koordlet reports, towards nodes that use little.
//!
//! The nodes of each pool are classed by thresholds ([`classify`]). A node that was overutilized for long enough ([`detector`]) is relieved of pods
//! until it no longer is, or until the targets have taken what they can ([`relief`], [`budget`]). First all that nodes use counts, and then what
//! production pods use.

mod budget;
mod classify;
mod detector;
mod pool;
mod reason;
mod relief;
mod rooms;
mod thresholds;
mod usage;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use koord_config::descheduler::LowNodeLoadArgs;
use koord_descheduler_framework::{
    Balance, NodeId, Pass, Plugin, PodId, ReasonCode, Refusal, Registration, StrategyError,
};
use koord_resource::controller::ResourceKind;
use koord_scheduling::ResourceVector;
use koord_types::node_metric::NodeMetric;

use self::{
    classify::Class,
    detector::{Condition, Detector, Detectors},
    pool::Pool,
    relief::Relief,
    usage::{NodeUsage, Production, Scope},
};
use crate::{ArgsError, selection::Movable};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct LowNodeLoad {
    args: LowNodeLoadArgs,
    movable: Movable,
    /// The nodes outside of `nodePools`, and then those.
    pools: Vec<Pool>,
    /// For how long it is remembered that a node was overutilized.
    memory_ms: i64,
}

/// What the pools of a pass share.
#[derive(Default)]
struct State {
    production: Production,
    detectors: Detectors,
    /// The overutilized nodes of earlier pools, which belong to no later one that selects nodes.
    processed: BTreeSet<NodeId>,
    moves: Vec<Move>,
}

/// A pod that is evicted in this pass, and what follows for the usage of nodes.
struct Move {
    pod: PodId,
    usage: ResourceVector,
    is_prod: bool,
    from: NodeId,
    /// The node that has room for it; `None` where that is not asked.
    to: Option<NodeId>,
}

impl LowNodeLoad {
    /// The strategy for passes with this interval. A node must be remembered from pass to pass, so `detectorCacheTimeout` is raised to two intervals
    /// where it is no longer than one.
    ///
    /// # Errors
    ///
    /// A selector is none.
    pub fn new(args: LowNodeLoadArgs, interval: Duration) -> Result<Self, ArgsError> {
        let pools = Pool::all(&args)?;
        let selectors = args.pod_selectors.iter().map(|pods| pods.selector.as_ref());
        let movable = Movable::new(args.evictable_namespaces.as_ref(), selectors)?;
        let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
        let memory_ms = args.detector_cache_timeout.as_nanos() / 1_000_000;
        let memory_ms = if memory_ms > interval_ms { memory_ms } else { interval_ms.saturating_mul(2) };
        Ok(Self { args, movable, pools, memory_ms })
    }

    fn balance_pool(&self, pass: &mut Pass<'_>, pool: &Pool, state: &mut State) {
        let cluster = pass.cluster();
        let ids = pool.select(cluster, pass.nodes(), &state.processed);
        let mut nodes = self.usages(pass, pool, &ids, state);
        let bounds = usage::limit(cluster, &pool.thresholds, &mut nodes);
        let has_prod = pool.thresholds.has_prod;
        let nodes: Vec<(NodeUsage<'_>, Class)> = nodes
            .into_iter()
            .map(|node| {
                let class = Class::of(&node, &bounds, has_prod);
                (node, class)
            })
            .collect();
        let now_ms = pass.now().as_millisecond();
        let sources = [Scope::Node, Scope::Prod]
            .map(|scope| abnormal(pass, scope, &nodes, state.detectors.of(scope), &pool.condition, now_ms));
        leave_others(pass, &nodes);
        if sources.iter().all(Vec::is_empty) {
            return;
        }
        if let Err(refusal) = self.check_targets(&nodes) {
            let all = sources.iter().flatten().filter_map(|source| nodes.get(*source));
            all.for_each(|(node, _)| pass.leave_node(node.id, &refusal));
            return;
        }
        let high = nodes.iter().filter(|(_, class)| *class == Class::High).map(|(node, _)| node.id);
        let high: Vec<NodeId> = high.collect();
        Relief::new(self, cluster, nodes, &bounds, has_prod, state).run(pass, sources);
        state.processed.extend(high);
    }

    /// What the nodes use of which that is known, after the moves of earlier pools.
    fn usages<'a>(&self, pass: &mut Pass<'a>, pool: &Pool, ids: &[NodeId], state: &State) -> Vec<NodeUsage<'a>> {
        let (cluster, now_ms) = (pass.cluster(), pass.now().as_millisecond());
        let max_age_ms = self.args.node_metric_expiration_seconds.saturating_mul(1000);
        let production = pool.thresholds.has_prod.then_some(&state.production);
        let mut nodes = Vec::with_capacity(ids.len());
        for id in ids {
            match NodeUsage::of(cluster, *id, now_ms, max_age_ms, production) {
                Some(usage) => nodes.push(usage),
                None => pass.leave_node(*id, &ReasonCode::NodeUsageUnknown.into()),
            }
        }
        for Move { usage, is_prod, from, to, .. } in &state.moves {
            let is_prod = *is_prod && pool.thresholds.has_prod;
            for node in &mut nodes {
                if node.id == *from {
                    node.change(|used| used.subtract(usage), is_prod);
                } else if Some(node.id) == *to {
                    node.change(|used| used.add(usage), is_prod);
                }
            }
        }
        nodes
    }

    /// Whether there are enough nodes that may take pods, and else why nothing is relieved.
    fn check_targets(&self, nodes: &[(NodeUsage<'_>, Class)]) -> Result<(), Refusal> {
        let low = nodes.iter().filter(|(_, class)| class.is_low()).count();
        let demanded = usize::try_from(self.args.number_of_nodes).unwrap_or(0);
        if low == 0 {
            return Err(ReasonCode::NoTargetNodes.into());
        }
        if low <= demanded {
            let refusal = Refusal::new(ReasonCode::TooFewNodesUnderutilized);
            return Err(refusal.with("nodes", low).with("numberOfNodes", demanded));
        }
        Ok(())
    }
}

impl Detectors {
    fn of(&mut self, scope: Scope) -> &mut Detector {
        match scope {
            Scope::Node => &mut self.node,
            Scope::Prod => &mut self.prod,
        }
    }
}

/// Records in a detector what was found in this pass, and returns the nodes that were overutilized in a scope for long enough.
fn abnormal(
    pass: &mut Pass<'_>,
    scope: Scope,
    nodes: &[(NodeUsage<'_>, Class)],
    detector: &mut Detector,
    condition: &Condition,
    now_ms: i64,
) -> Vec<usize> {
    let mut abnormal = Vec::new();
    for (index, (node, class)) in nodes.iter().enumerate() {
        let name = &node.node.name;
        if class.is_source(scope) {
            if detector.mark_abnormal(name, now_ms, condition) {
                abnormal.push(index);
            } else {
                pass.leave_node(node.id, &ReasonCode::NotOverutilizedLongEnough.into());
            }
        } else if class.is_target(scope) {
            detector.reset(name);
        } else if *class != Class::High {
            // What production pods use of a node that is overutilized as a whole is not looked at.
            detector.mark_normal(name, now_ms, condition);
        }
    }
    abnormal
}

/// Pods stay whose nodes are not overutilized.
fn leave_others(pass: &mut Pass<'_>, nodes: &[(NodeUsage<'_>, Class)]) {
    if pass.wants_verdicts() {
        let is_source = |class: &Class| class.is_source(Scope::Node) || class.is_source(Scope::Prod);
        for (node, _) in nodes.iter().filter(|(_, class)| !is_source(class)) {
            pass.leave_node(node.id, &ReasonCode::NodeNotOverutilized.into());
        }
    }
}

impl Plugin for LowNodeLoad {
    fn name(&self) -> &'static str {
        "LowNodeLoad"
    }

    fn register(self: Arc<Self>) -> Registration {
        const READS: &[ResourceKind] = &[ResourceKind::typed::<NodeMetric>()];
        Registration::of(&self).balance(&self).reading(READS)
    }
}

impl Balance for LowNodeLoad {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if self.args.paused {
            return Ok(());
        }
        let mut state = State { detectors: std::mem::take(pass.memory()), ..State::default() };
        state.detectors.forget(pass.now().as_millisecond(), self.memory_ms);
        for pool in &self.pools {
            self.balance_pool(pass, pool, &mut state);
        }
        *pass.memory() = state.detectors;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
