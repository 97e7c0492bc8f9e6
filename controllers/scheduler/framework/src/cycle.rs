//! The search for a node: filters, scores, and the choice among the best.
//!
//! Answers that are local to nodes are kept per class of pods: for the next pod of a class only the nodes are filtered that
//! have changed since. What is not local is asked of all nodes that are left.

mod admission;
mod all_rows;
mod candidate_cache;
mod candidates;
mod everywhere;
mod filtering;
mod plan;
mod prepared;
mod rehearsal;
mod sample;
mod scorer;
mod verdicts;

use std::sync::Arc;

pub use self::candidate_cache::CandidateCache;
pub use self::everywhere::{NodeRefusal, OnNode, PluginScore};
pub use self::prepared::Prepared;
pub use self::rehearsal::{Filled, NotNext, Rehearsal};
use self::{candidates::Candidates, plan::Plan};
use crate::{
    AttemptState, Code, Found, Profile, Reason, Rejection, Request, Verdict, cluster::Cluster, columns::Row, pod::Pod,
    timing::Timing,
};

impl Profile {
    /// Searches a node for a pod, and measures plugins. `draw` gives a number below its argument, for the choice among equals.
    pub fn search_timed<T: Timing>(
        &self,
        pod: &Arc<Pod>,
        state: &AttemptState,
        cluster: &mut Cluster,
        cache: &mut CandidateCache,
        draw: impl FnOnce(u32) -> u32,
        timing: &mut T,
    ) -> Found {
        let class = cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &self.plugins, state };
        if let Some((plugin, rejection)) = self.admit_timed(&request, cluster, timing) {
            return Found::Never(plugin, rejection);
        }
        let (planner, plan) = self.plan(&request, cluster);
        if let Plan::Nowhere(rejection) = plan {
            return Found::Never(planner, rejection);
        }
        let is_individual = self.is_individual(pod, cluster);
        let candidates = self.candidates(&request, is_individual, cluster, cache, timing);
        let mut candidates = match candidates {
            Ok(candidates) => candidates,
            Err((plugin, rejection)) => return Found::Never(plugin, rejection),
        };
        let held = candidates.held_rows(self, pod, cluster);
        let found = match plan {
            Plan::Only(row) => candidates.only(row, planner, &held, cluster),
            plan => match candidates.first_of(&plan, pod, &held, cluster) {
                Some(row) => Found::of_first(row),
                None => candidates.choose_of_sample(self, pod, &held, cache, cluster, draw),
            },
        };
        if T::IS_ON {
            candidates.time_one_node(self, &found, cluster, timing);
        }
        if !is_individual {
            cache.keep(candidates, cluster);
        }
        found
    }

    /// What is known about the nodes for a pod: what is kept for its class or for one that is evaluated alike, or else what all nodes
    /// answer now. An error where a plugin refuses all of them.
    #[inline]
    fn candidates(
        &self,
        request: &Request<'_>,
        is_individual: bool,
        cluster: &mut Cluster,
        cache: &mut CandidateCache,
        timing: &mut impl Timing,
    ) -> Result<Candidates, (u8, Rejection)> {
        let cached = if is_individual { None } else { cache.bring_up_to_date(self, request, cluster, timing) };
        if let Some(cached) = cached {
            return Ok(cached);
        }
        cluster.exclude_all();
        let prepared = self.prepare_timed(request, cluster, timing);
        if let Some(verdict) = prepared.refused {
            return Err(self.rejected_by(&verdict, cluster));
        }
        let alike = if is_individual { None } else { cache.alike(self, request, &prepared, cluster, timing) };
        Ok(alike.unwrap_or_else(|| Candidates::of(self, Arc::clone(request.class), prepared, cluster)))
    }

    /// The nodes that take a pod, beside the nominated pods.
    pub fn takers(&self, request: &Request<'_>, cluster: &mut Cluster) -> Vec<Row> {
        let prepared = self.prepare(request, cluster);
        if prepared.is_refused() {
            return Vec::new();
        }
        let mut candidates = Candidates::of(self, Arc::clone(request.class), prepared, cluster);
        let held = candidates.held_rows(self, request.pod, cluster);
        let rows = cluster.rows().map(|(row, _)| row);
        rows.filter(|row| !held.contains_key(row) && candidates.takes(*row, cluster)).collect()
    }

    /// Whether answers for this pod hold for no other pod of its class.
    fn is_individual(&self, pod: &Pod, cluster: &Cluster) -> bool {
        self.each(|plugin| &plugin.scheduling_signature).any(|point| point.is_individual(pod, cluster))
    }

    /// The pods that are nominated to a row, other than this one, and that go before it. Where nominated pods are
    /// ignored, reserve pods count all the same, as they do in the original.
    pub(crate) fn nominated_before(&self, pod: &Pod, row: Row, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let mut before = cluster.nominated_before(pod, row);
        if cluster.policy().ignores_nominated {
            before.retain(|other| other.is_reservation());
        }
        before.retain(|other| {
            !self.each(|plugin| &plugin.post_filter).any(|point| point.shares_nomination(pod, other, cluster))
        });
        before
    }

    /// The reasons of a verdict, as events and conditions show them.
    pub fn reasons(&self, verdict: &Verdict, cluster: &Cluster) -> Vec<Reason> {
        verdict.reasons(&self.plugins, cluster)
    }

    /// The plugin and the rejection of a pod by a verdict about all nodes.
    fn rejected_by(&self, verdict: &Verdict, cluster: &Cluster) -> (u8, Rejection) {
        let code = if verdict.refusal.resolvable { Code::Unschedulable } else { Code::Unresolvable };
        (verdict.plugin, Rejection { code, reasons: self.reasons(verdict, cluster) })
    }
}

#[cfg(test)]
mod tests;
