//! Evicts pods beside which there is a pod that their required anti-affinity forbids.

mod conflicts;

use std::sync::Arc;

use koord_config::descheduler::RemovePodsViolatingInterPodAntiAffinityArgs;
use koord_descheduler_framework::{
    Deschedule, ObjectType as _, Pass, Plugin, Pod, PodId, PodSelection, ReasonCode, Registration, StrategyError,
    objects::Namespace, order, pod::Template,
};
use koord_resource::controller::ResourceKind;

use self::conflicts::Conflicts;
use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemovePodsViolatingInterPodAntiAffinity {
    selection: PodSelection,
}

impl RemovePodsViolatingInterPodAntiAffinity {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: &RemovePodsViolatingInterPodAntiAffinityArgs) -> Result<Self, ArgsError> {
        Ok(Self { selection: selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())? })
    }
}

impl Plugin for RemovePodsViolatingInterPodAntiAffinity {
    fn name(&self) -> &'static str {
        "RemovePodsViolatingInterPodAntiAffinity"
    }

    fn register(self: Arc<Self>) -> Registration {
        const READS: &[ResourceKind] = &[Namespace::KIND];
        Registration::of(&self).deschedule(&self).reading(READS)
    }
}

impl Deschedule for RemovePodsViolatingInterPodAntiAffinity {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let cluster = pass.cluster();
        let forbids = |template: &Arc<Template>| !template.placement.pod_affinity.forbidden.is_empty();
        if !pass.is_search_of_use() || (!pass.wants_verdicts() && !cluster.templates().any(forbids)) {
            return Ok(());
        }
        // A pod that is being deleted forbids nothing: where two pods forbid each other, the one that remains is not to follow the other.
        // QUIRK: the arguments choose the pods that are forbidden too (`pods_that_the_arguments_do_not_choose_are_not_compared`).
        let counts = |id: PodId, pod: &Pod| {
            !pod.is_deleting && !pass.is_evicted(id) && selection::check_active(&self.selection, pod).is_ok()
        };
        let conflicts = Conflicts::new(cluster, pass.nodes(), counts);
        let mut candidates: Vec<(PodId, &Pod)> = Vec::new();
        for node in pass.nodes() {
            if !pass.is_search_of_use() {
                break;
            }
            candidates.clear();
            for (id, pod) in cluster.pods_on(*node) {
                match selection::check_active(&self.selection, pod) {
                    Err(refusal) => pass.leave(id, refusal),
                    Ok(()) if pod.template.placement.pod_affinity.forbidden.is_empty() => {
                        pass.leave(id, ReasonCode::AntiAffinityHolds);
                    }
                    Ok(()) => candidates.push((id, pod)),
                }
            }
            candidates.sort_by_key(|(_, pod)| order::low_to_high(pod));
            for (id, pod) in candidates.iter().copied() {
                let conflict = conflicts.of(id, pod, *node, |other| pass.is_evicted(other));
                let Some((term, other)) = conflict.and_then(|(term, other)| Some((term, cluster.pod(other)?))) else {
                    pass.leave(id, ReasonCode::AntiAffinityHolds);
                    continue;
                };
                if selection::may_be_evicted(pass, id) {
                    let (other, key) = (other.key.as_str(), &term.topology_key);
                    let text = format!("its anti-affinity forbids {other}, which is in the same domain of {key}");
                    let reason = ReasonCode::AntiAffinityViolated.reason(text);
                    pass.evict(id, reason.with("pod", other).with("topologyKey", key), "");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
