//! Ranks pods such that a scale-down which follows the ranks empties whole nodes, or evicts them in this order.

use std::{cmp::Reverse, sync::Arc};

use koord_config::descheduler::{BinPackStrategy, ScaleDownBinPackArgs};
use koord_descheduler_framework::{
    Balance, Cluster, NodeId, Pass, Plugin, PodId, ReasonCode, Refusal, Registration, StrategyError, pod::DELETION_COST,
};
use koord_scheduling::{ResourceId, ResourceVector, Selector};

use crate::{
    ArgsError,
    selection::{self, Movable},
};

/// What the deletion of a pod costs that must not go.
const COST_MAX: i32 = i32::MAX;

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct ScaleDownBinPack {
    args: ScaleDownBinPackArgs,
    nodes: Option<Selector>,
    movable: Movable,
}

/// A node with pods that may go.
struct Candidate {
    node: NodeId,
    /// How much of it is used by pods that stay, for each unit that pods use which may go.
    score: f64,
    /// The pods that may go, in their order.
    eligible: Vec<PodId>,
    /// Pods that are selected, but protected.
    skipped: Vec<PodId>,
}

/// The resources that count, with their weights.
struct Weights(Vec<(ResourceId, f64)>);

impl ScaleDownBinPack {
    /// # Errors
    ///
    /// A selector is none.
    pub fn new(args: ScaleDownBinPackArgs) -> Result<Self, ArgsError> {
        let nodes = args.node_selector.as_ref().map(|nodes| selection::parse("nodeSelector", nodes)).transpose()?;
        let selectors = args.pod_selectors.iter().map(|pods| pods.selector.as_ref());
        let movable = Movable::new(args.evictable_namespaces.as_ref(), selectors)?;
        Ok(Self { args, nodes, movable })
    }

    /// A node with its pods; `None` where none may go.
    fn candidate(&self, pass: &mut Pass<'_>, node: NodeId, weights: &Weights) -> Option<Candidate> {
        let cluster = pass.cluster();
        let mut staying = ResourceVector::default();
        let (mut eligible, mut skipped) = (Vec::new(), Vec::new());
        for (id, pod) in cluster.active_pods_on(node) {
            match self.movable.check(pod) {
                Ok(()) if pass.filter(id) => {
                    eligible.push(id);
                    continue;
                }
                Ok(()) => {}
                Err(refusal) => pass.leave(id, refusal),
            }
            staying.add(cluster.requests(id));
            if self.movable.selects_labels(pod) {
                skipped.push(id);
            }
        }
        if eligible.is_empty() {
            return None;
        }
        let allocatable = cluster.allocatable(node);
        let mut leaving = ResourceVector::default();
        for id in &eligible {
            leaving.add(cluster.requests(*id));
        }
        let score = score(weights.share(&staying, allocatable), weights.share(&leaving, allocatable));
        sort(cluster, &mut eligible, weights, allocatable);
        Some(Candidate { node, score, eligible, skipped })
    }

    /// All nodes with pods that may go, the ones that are emptied at the lowest price first.
    fn candidates(&self, pass: &mut Pass<'_>) -> Vec<Candidate> {
        let cluster = pass.cluster();
        // Weights of resources outside of `resources` count too.
        let weights = self.args.resource_weights.iter();
        let weights = weights.filter_map(|(name, weight)| Some((cluster.resources().get(name)?, *weight)));
        let weights = Weights(weights.collect());
        let nodes = selection::nodes(cluster, pass.nodes(), self.nodes.as_ref());
        let mut candidates: Vec<Candidate> =
            nodes.into_iter().filter_map(|node| self.candidate(pass, node, &weights)).collect();
        candidates.sort_by(|one, other| {
            let by_score = one.score.total_cmp(&other.score);
            let by_pods = || one.eligible.len().cmp(&other.eligible.len());
            let by_name = || cluster.node_name(one.node).cmp(cluster.node_name(other.node));
            by_score.then_with(by_pods).then_with(by_name)
        });
        candidates
    }

    fn evict(&self, pass: &mut Pass<'_>, candidates: &[Candidate]) {
        let max = usize::try_from(self.args.max_pods_to_evict).unwrap_or(0);
        let (mut rank, mut evicted) = (0_usize, 0);
        for candidate in candidates {
            for id in &candidate.eligible {
                if evicted == max {
                    pass.leave(*id, Refusal::new(ReasonCode::StrategyTotalLimit).with("limit", max));
                    continue;
                }
                let text =
                    format!("its node is emptied at the lowest price: rank {rank}, score {:.4}", candidate.score);
                let reason = ReasonCode::ScaleDownBinPacked.reason(text);
                let reason = reason.with("rank", rank).with("score", format!("{:.4}", candidate.score));
                if pass.evict(*id, reason, "scale-down binpack") {
                    evicted += 1;
                }
                rank += 1;
            }
        }
    }
}

/// The order of pods of one node: large ones, then new ones, then by namespace and name.
fn sort(cluster: &Cluster, pods: &mut [PodId], weights: &Weights, allocatable: &ResourceVector) {
    let key = |id: &PodId| {
        let share = weights.share(cluster.requests(*id), allocatable);
        (share, cluster.pod(*id).map(|pod| Reverse(pod.created)))
    };
    let mut keyed: Vec<_> = pods.iter().map(|id| (key(id), *id)).collect();
    keyed.sort_by(|((share, created), _), ((other_share, other_created), _)| {
        other_share.total_cmp(share).then_with(|| created.cmp(other_created))
    });
    keyed.into_iter().zip(pods).for_each(|((_, id), pod)| *pod = id);
}

fn score(staying: f64, leaving: f64) -> f64 {
    match (staying > 0.0, leaving > 0.0) {
        (_, true) => staying / leaving,
        (true, false) => f64::INFINITY,
        (false, false) => 0.0,
    }
}

impl Weights {
    /// The weighted sum of the shares of what is allocatable. Resources that the node lacks do not count.
    fn share(&self, requests: &ResourceVector, allocatable: &ResourceVector) -> f64 {
        let share = |(id, weight): &(ResourceId, f64)| {
            let allocatable = allocatable.get(*id);
            if allocatable > 0 { weight * requests.get(*id) as f64 / allocatable as f64 } else { 0.0 }
        };
        self.0.iter().map(share).sum()
    }
}

/// Writes what the deletion of pods costs, as far as they do not say so already.
fn write_costs(pass: &mut Pass<'_>, candidates: &[Candidate]) -> Result<(), StrategyError> {
    let ranked = candidates.iter().flat_map(|candidate| &candidate.eligible).copied().enumerate();
    let ranked = ranked.map(|(rank, id)| (id, i32::try_from(rank).unwrap_or(COST_MAX)));
    let skipped = candidates.iter().flat_map(|candidate| &candidate.skipped).map(|id| (*id, COST_MAX));
    let mut failed = 0_usize;
    for (id, cost) in ranked.chain(skipped) {
        let written = pass.cluster().pod(id).and_then(|pod| pod.annotation(DELETION_COST));
        if written.is_some_and(|written| written == cost.to_string()) || pass.is_evicted(id) {
            continue;
        }
        if !pass.set_deletion_cost(id, cost) {
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(StrategyError(format!("the annotation {DELETION_COST} of {failed} pods could not be written"))),
    }
}

impl Plugin for ScaleDownBinPack {
    fn name(&self) -> &'static str {
        "ScaleDownBinPack"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for ScaleDownBinPack {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if self.args.paused {
            return Ok(());
        }
        let candidates = self.candidates(pass);
        match self.args.strategy {
            BinPackStrategy::CalculateOnly => write_costs(pass, &candidates),
            BinPackStrategy::EvictDirectly => {
                self.evict(pass, &candidates);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
