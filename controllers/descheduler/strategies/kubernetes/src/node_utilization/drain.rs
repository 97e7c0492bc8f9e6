//! How pods leave nodes.

use koord_descheduler_framework::{NamespaceSelection, Pass, PodId, Reason, ReasonCode, Refusal, order::low_to_high};

use super::{
    measure::{NodeUsage, Resources},
    targets::Targets,
    usage::{PodUsage, UsageSource},
};

/// Pods leave some nodes towards others.
pub(crate) struct Drain<'a> {
    pub(crate) resources: &'a Resources<'a>,
    pub(crate) usage: &'a dyn UsageSource,
    pub(crate) targets: Targets<'a>,
    /// The namespaces whose pods may go.
    pub(crate) namespaces: &'a NamespaceSelection,
    /// The most pods that leave one node.
    pub(crate) per_node_max: Option<u32>,
}

/// A node that pods leave.
pub(crate) struct Source<'a> {
    pub(crate) node: &'a NodeUsage,
    /// Pods leave until it uses no more than this; `None` lets all of them leave.
    pub(crate) keep: Option<Vec<i64>>,
    /// Why its pods go.
    pub(crate) reason: Reason,
}

impl Drain<'_> {
    /// Evicts pods of a node, the least important first. `check` says which pods are in question.
    pub(crate) fn run(
        &mut self,
        pass: &mut Pass<'_>,
        source: &Source<'_>,
        check: impl Fn(PodId) -> Result<(), ReasonCode>,
    ) {
        let cluster = pass.cluster();
        let mut pods: Vec<PodId> = cluster.active_pods_on(source.node.id).map(|(id, _)| id).collect();
        pods.sort_by_cached_key(|id| cluster.pod(*id).map(|pod| low_to_high(pod)));
        let mut usage = source.node.usage.clone();
        let mut evicted = 0;
        let mut stop = self.stop(source, &usage, evicted);
        for id in pods {
            if let Some(refusal) = &stop {
                if !pass.wants_verdicts() {
                    return;
                }
                pass.leave(id, refusal.clone());
                continue;
            }
            let Some(pod) = cluster.pod(id) else { continue };
            if !self.namespaces.selects(pod.namespace()) {
                pass.leave(id, ReasonCode::NamespaceNotSelected);
                continue;
            }
            if let Err(code) = check(id) {
                pass.leave(id, code);
                continue;
            }
            if !pass.filter(id) {
                continue;
            }
            let used = match self.usage.of_pod(cluster, self.resources, id) {
                PodUsage::Amounts(used) => used,
                PodUsage::NotMeasured => Vec::new(),
                PodUsage::Unknown => {
                    pass.leave(id, ReasonCode::PodUsageUnknown);
                    continue;
                }
            };
            let target = match self.targets.find(pod, &used) {
                Ok(target) => target,
                Err(code) => {
                    pass.leave(id, Refusal::new(code).with("targets", self.targets.count()));
                    continue;
                }
            };
            if pass.pre_eviction_filter(id) && pass.evict(id, source.reason.clone(), "") {
                usage.iter_mut().zip(&used).for_each(|(usage, amount)| *usage = usage.saturating_sub(*amount));
                self.targets.take(target, &used);
                evicted += 1;
                stop = self.stop(source, &usage, evicted);
            }
        }
    }

    /// Why no further pod leaves a node; `None` while pods leave.
    fn stop(&self, source: &Source<'_>, usage: &[i64], evicted: u32) -> Option<Refusal> {
        let is_above = |keep: &Vec<i64>| usage.iter().zip(keep).any(|(usage, keep)| usage > keep);
        if source.keep.as_ref().is_some_and(|keep| !is_above(keep)) {
            return Some(Refusal::new(ReasonCode::NodeRelieved).with("evicted", i64::from(evicted)));
        }
        if let Some(resource) = self.targets.exhausted() {
            let name = std::sync::Arc::<str>::from(self.resources.name(resource));
            return Some(Refusal::new(ReasonCode::TargetsFull).with("resource", name));
        }
        let is_limit = |max: &u32| evicted >= *max;
        let limit = self.per_node_max.filter(is_limit)?;
        Some(Refusal::new(ReasonCode::StrategyNodeLimit).with("limit", i64::from(limit)))
    }
}
