//! The evaluator of preemption, which plugins share: who may preempt, the dry run, extenders, and the candidate that is selected.

use std::collections::BTreeSet;

use koord_core::uid::Uid;

use super::{Attempted, Candidate, NoCandidate, NotAdmitted, Rules, Width, least_harm};
use crate::{
    Code, Found, PostFilterResult, Profile, Rejection, Request,
    cluster::{Cluster, Placed},
    columns::Row,
    pod::Pod,
};

/// Preempts pods for one that no node takes, by the rules of the plugin that calls it.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator {
    /// How many candidates are looked for.
    pub width: Width,
}

impl Evaluator {
    /// Preempts by these rules, for the plugin of this name.
    pub fn preempt(
        &self,
        request: &Request<'_>,
        attempted: &mut Attempted<'_>,
        rules: impl Rules,
        plugin: &str,
    ) -> PostFilterResult {
        if !request.template().preempts {
            return not_eligible("preemptionPolicy=Never.");
        }
        if has_terminating_victims(request, attempted, &rules) {
            return not_eligible("a terminating pod on the nominated node.");
        }
        if is_rejected_by_another(attempted, plugin) {
            // The plugin that rejected the pod knows which pods may be victims: evictions by others would be in vain.
            let (nodes, words) = (attempted.cluster.len(), rules.no_victims(""));
            let found = attempted.candidates(request, &OnNodesAlone(rules), self.width);
            let words = format!("preemption: 0/{nodes} nodes are available: {nodes} {words}.");
            return found.map_or_else(no_candidate, |_| PostFilterResult::NoCandidate(words));
        }
        let found = attempted.candidates(request, &rules, self.width);
        found.map_or_else(no_candidate, |candidates| nominate(request, attempted, candidates))
    }
}

/// Nominates the pod to the candidate that does the least harm, among those that extenders leave.
pub fn nominate(request: &Request<'_>, attempted: &Attempted<'_>, mut candidates: Vec<Candidate>) -> PostFilterResult {
    for extenders in request.each(|plugin| &plugin.extender_calls) {
        candidates = match extenders.process_preemption(request, attempted.cluster, candidates) {
            Ok(candidates) => candidates,
            Err(instead) => return instead,
        };
    }
    least_harm(candidates).map_or_else(
        || PostFilterResult::NoCandidate("preemption: no candidate node for preemption".to_owned()),
        |best| PostFilterResult::Nominate {
            row: best.row,
            victims: best.victims.iter().map(|placed| placed.pod.uid.clone()).collect(),
        },
    )
}

/// The pod may not preempt.
pub fn not_eligible(due_to: &str) -> PostFilterResult {
    PostFilterResult::Nothing(format!("preemption: not eligible due to {due_to}"))
}

/// There is no candidate.
pub fn no_candidate(why: NoCandidate) -> PostFilterResult {
    match why {
        NoCandidate::Helpless(words) => PostFilterResult::NoCandidate(format!("preemption: {words}")),
        NoCandidate::NoVictim(words) => PostFilterResult::Stop(format!("preemption: {words}")),
    }
}

/// The answer for a reserve pod, which the plugin Reservation alone preempts for.
pub fn refuse_reserve_pod(request: &Request<'_>) -> Option<PostFilterResult> {
    let Pod { uid, .. } = &**request.pod;
    request.pod.is_reservation().then(|| PostFilterResult::Stop(format!("preemption: pod \"{uid}\" not found")))
}

/// Whether pods of which `is_victim` holds are on the node that the pod is nominated to, and that node takes it once they are gone.
pub fn awaits_victims(request: &Request<'_>, attempted: &Attempted<'_>, is_victim: impl Fn(&Placed) -> bool) -> bool {
    let cluster = &*attempted.cluster;
    let Some(row) = cluster.nomination(&request.pod.uid) else { return false };
    !is_unresolvable(request, attempted, row) && cluster.pods_on(row).any(is_victim)
}

/// Whether a node refuses the pod for a reason that the removal of pods does not change.
pub fn is_unresolvable(request: &Request<'_>, attempted: &Attempted<'_>, row: Row) -> bool {
    match attempted.found {
        Found::Never(_, rejection) => rejection.code != Code::Unschedulable,
        Found::Node { .. } | Found::Nothing(_) => {
            let refused = attempted.profile.prepare(request, attempted.cluster).filter(attempted.cluster, row).err();
            refused.is_some_and(|verdict| !verdict.refusal.resolvable)
        }
    }
}

fn has_terminating_victims(request: &Request<'_>, attempted: &Attempted<'_>, rules: &dyn Rules) -> bool {
    let cluster = &*attempted.cluster;
    awaits_victims(request, attempted, |placed| rules.may_evict(placed, cluster) && cluster.is_evicted(placed))
}

/// Whether the pod was rejected as a whole by another plugin that preempts for such pods.
fn is_rejected_by_another(attempted: &Attempted<'_>, plugin: &str) -> bool {
    let Found::Never(index, Rejection { code: Code::Unschedulable, .. }) = attempted.found else { return false };
    let Some(rejecting) = attempted.profile.plugins.get(usize::from(*index)) else { return false };
    let preempts = rejecting.post_filter.as_ref().is_some_and(|point| point.preempts_for_rejected());
    attempted.profile.post_filters.contains(index) && preempts && rejecting.name() != plugin
}

/// The rules for a pod that another plugin rejected as a whole: nodes alone are asked.
struct OnNodesAlone<R>(R);

impl<R: Rules> Rules for OnNodesAlone<R> {
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool {
        self.0.may_evict(placed, cluster)
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

    fn admits(&self, _: &Request<'_>, _: &Profile, _: &Cluster) -> Result<(), NotAdmitted> {
        Ok(())
    }
}
