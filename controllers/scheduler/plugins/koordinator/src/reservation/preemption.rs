//! Preemption for pods and Reservations, where `enablePreemption` says so (3C.13).

use std::collections::BTreeSet;

use koord_core::uid::Uid;
use koord_scheduler_framework::{
    PostFilterResult, Request,
    cluster::{Cluster, Placed},
    preemption::{Attempted, Evaluator, LowerPriority, Rules},
};
use koord_types::pod_annotations::DISABLE_PREEMPTIBLE;

/// Preempts less important pods for a pod or a Reservation.
pub(super) fn preempt(
    evaluator: &Evaluator,
    request: &Request<'_>,
    attempted: &mut Attempted<'_>,
    name: &'static str,
) -> PostFilterResult {
    let rules = Preemptible(LowerPriority { priority: request.template().priority });
    evaluator.preempt(request, attempted, rules, name)
}

/// Pods of a lower priority may be victims unless their label says otherwise.
struct Preemptible(LowerPriority);

impl Rules for Preemptible {
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool {
        let is_protected = placed.pod.template.labels.get(DISABLE_PREEMPTIBLE.name()) == Some("true");
        !is_protected && self.0.may_evict(placed, cluster)
    }

    fn has_victims(&self, cluster: &Cluster) -> bool {
        self.0.has_victims(cluster)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        self.0.protected(pods, cluster)
    }

    fn no_victims(&self, node: &str) -> String {
        self.0.no_victims(node)
    }
}
