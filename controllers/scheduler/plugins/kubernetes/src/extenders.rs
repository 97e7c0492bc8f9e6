//! Extenders: webhooks that filter and rate the nodes that all plugins leave, and choose victims of preemption.
//!
//! The results of the calls come from outside ([`koord_scheduler_framework::extender`]). This plugin filters and scores by them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use koord_scheduler_framework::{
    ExtenderCalls, Filter, NodeFilter, NodeScore, Plugin, PluginState, PostFilterResult, PreFilter, PreparedFilter,
    Reason, ReasonCode, Refusal, Registration, Rejection, Request, SchedulingSignature, Score,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    extender::{Extender, ExtenderError, ExtenderResults, FailedNode, NodeVictims, Nodes, Victims},
    pod::Pod,
    preemption::Candidate,
};

/// An extender refused the node with a reason.
const WITH_REASON: u16 = 0;
/// An extender left the node out of its result, without a reason.
const WITHOUT_REASON: Refusal = Refusal::unresolvable(1);

/// Calls extenders for the pods in which they are interested.
pub struct Extenders(Arc<[Extender]>);

impl Extenders {
    /// These, in their order.
    pub fn new(extenders: Arc<[Extender]>) -> Self {
        Self(extenders)
    }

    fn interested<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Extender> {
        self.0.iter().filter(|extender| extender.is_interested(&pod.template))
    }
}

/// The victims of a candidate, as extenders get them.
fn victims_of(candidate: &Candidate, cluster: &Cluster) -> Option<(Arc<str>, NodeVictims)> {
    let node = cluster.node(candidate.row)?;
    let pods = candidate.victims.iter().map(|placed| placed.pod.uid.clone()).collect();
    Some((Arc::clone(&node.name), NodeVictims { pods, violations: candidate.violations }))
}

/// A candidate with the victims that were chosen, as far as they are there still; none where one of them must not be evicted.
fn left(row: Row, chosen: &Victims, cluster: &Cluster) -> Option<Candidate> {
    let NodeVictims { pods, violations } = chosen.get(&cluster.node(row)?.name)?;
    let on_node = pods.iter().filter_map(|uid| cluster.pod(uid)).filter(|placed| placed.row == row);
    let victims: Vec<Placed> = on_node.cloned().collect();
    let may_go = !victims.is_empty() && !victims.iter().any(|placed| cluster.is_spared(placed));
    may_go.then_some(Candidate { row, victims, violations: *violations })
}

impl Plugin for Extenders {
    fn name(&self) -> &'static str {
        "Extender"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .pre_filter(&self)
            .filter(&self)
            .extender_calls(&self)
            .score(&self)
            .state(&self)
            .scheduling_signature(&self)
    }
}

impl PreFilter for Extenders {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        match node_result(request, cluster) {
            Some(Err(error)) => Err(Rejection::error(ReasonCode::ExtenderFailed.reason(&error.message))),
            Some(Ok(_)) | None => Ok(()),
        }
    }
}

impl Filter for Extenders {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        match node_result(request, cluster) {
            Some(Ok(nodes)) => PreparedFilter::Nodes(Box::new(ByExtenders(Arc::clone(nodes)))),
            Some(Err(_)) | None => PreparedFilter::Skip,
        }
    }

    fn reasons(&self, refusal: &Refusal, cluster: &Cluster) -> Vec<Reason> {
        let at = usize::try_from(refusal.operand).ok().filter(|_| refusal.reason == WITH_REASON);
        let failed = at.and_then(|at| cluster.state::<ExtenderResults>()?.failed_nodes().nth(at));
        failed.map(|failed| ReasonCode::ExtenderRefused.reason(failed.reason.clone())).into_iter().collect()
    }
}

impl ExtenderCalls for Extenders {
    fn may_call(&self, pod: &Pod) -> bool {
        self.interested(pod).any(|extender| extender.handles_nodes() || !extender.preempt.is_empty())
    }

    fn calls(&self, request: &Request<'_>, cluster: &Cluster) -> bool {
        self.interested(request.pod).any(Extender::handles_nodes) && node_result(request, cluster).is_none()
    }

    fn process_preemption(
        &self,
        request: &Request<'_>,
        cluster: &Cluster,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, PostFilterResult> {
        let pod = request.pod;
        if candidates.is_empty() || self.interested(pod).all(|extender| extender.preempt.is_empty()) {
            return Ok(candidates);
        }
        match cluster.state::<ExtenderResults>().and_then(|answers| answers.victims(pod)) {
            None => Err(PostFilterResult::CallExtenders(
                candidates.iter().filter_map(|one| victims_of(one, cluster)).collect(),
            )),
            Some(Err(_)) => Err(PostFilterResult::Stop(String::new())),
            Some(Ok(victims)) => Ok(candidates.iter().filter_map(|one| left(one.row, victims, cluster)).collect()),
        }
    }
}

impl Score for Extenders {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let nodes = node_result(request, cluster)?.ok()?;
        Some(Box::new(ByExtenders(Arc::clone(nodes))))
    }
}

impl PluginState for Extenders {
    fn state(&self) -> Box<dyn State> {
        Box::new(ExtenderResults::default())
    }
}

impl SchedulingSignature for Extenders {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        self.may_call(pod)
    }
}

/// The result of the extender call about nodes for the pod.
fn node_result<'c>(request: &Request<'_>, cluster: &'c Cluster) -> Option<Result<&'c Arc<Nodes>, &'c ExtenderError>> {
    cluster.state::<ExtenderResults>()?.nodes(request.pod)
}

/// Filters and scores nodes by the result of a call.
struct ByExtenders(Arc<Nodes>);

impl NodeFilter for ByExtenders {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(name) = cluster.node(row).map(|node| &node.name) else { return Err(Refusal::NOT_REQUESTED) };
        let Nodes { requested, accepted, failed } = &*self.0;
        if accepted.contains_key(name) {
            return Ok(());
        }
        if !requested.contains(name) {
            return Err(Refusal::NOT_REQUESTED);
        }
        let failed = failed.iter().zip(0..).find(|((failed, _), _)| *failed == name);
        Err(failed.map_or(WITHOUT_REASON, |((_, FailedNode { resolvable, .. }), at)| Refusal {
            reason: WITH_REASON,
            resolvable: *resolvable,
            operand: at,
        }))
    }
}

impl NodeScore for ByExtenders {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.node(row).and_then(|node| self.0.accepted.get(&node.name)).copied().unwrap_or(0)
    }

    fn is_local(&self) -> bool {
        true
    }
}
