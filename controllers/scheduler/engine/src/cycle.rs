//! The search for a node: filters, scores, and the choice among the best.
//!
//! Answers that are local to nodes are kept per class of pods: for the next pod of a class only the nodes are asked that
//! have changed since. What is not local is asked of all nodes that are left.

mod admission;
mod candidates;
mod everywhere;
mod filtering;
mod memory;
mod rehearsal;
mod sample;
mod scorer;
mod verdicts;

use std::sync::Arc;

pub use self::everywhere::{NodeRefusal, NodeScore, OnNode};
pub use self::memory::Memory;
pub use self::rehearsal::{Filled, NotNext, Rehearsal};
use self::{
    candidates::Candidates,
    filtering::{Filtering, first_refusal},
    scorer::Scorer,
};
pub use crate::plugin::{Found, Profile, Verdict};
use crate::{
    best::Best,
    cluster::{Cluster, Placed, Trial},
    columns::Row,
    hold::Holds,
    plugin::{Among, Code, Plan, PreFilter, Reason, Rejection, Request},
    pod::Pod,
    timing::{Point, Timing, Untimed},
};

/// What the plugins of a profile ask for one pod, or for all pods of a class.
pub struct Prepared {
    among: Among,
    filters: Vec<Filtering>,
    scores: Vec<Scorer>,
    /// A plugin that refuses all nodes.
    refused: Option<Verdict>,
}

impl Profile {
    /// Searches a node for a pod. `draw` gives a number below its argument, for the choice among equals.
    pub fn search(
        &self,
        pod: &Arc<Pod>,
        cluster: &mut Cluster,
        memory: &mut Memory,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        self.search_timed(pod, cluster, memory, draw, &mut Untimed)
    }

    /// The same, with the time that single plugins take.
    pub(crate) fn search_timed<T: Timing>(
        &self,
        pod: &Arc<Pod>,
        cluster: &mut Cluster,
        memory: &mut Memory,
        draw: impl FnOnce(u32) -> u32,
        timing: &mut T,
    ) -> Found {
        let class = cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &self.plugins };
        if let Some((plugin, rejection)) = self.admit_timed(&request, cluster, timing) {
            return Found::Never(plugin, rejection);
        }
        let (planner, plan) = self.plan(&request, cluster);
        if let Plan::Nowhere(rejection) = plan {
            return Found::Never(planner, rejection);
        }
        let is_individual = self.plugins.iter().any(|plugin| plugin.is_individual(pod, cluster));
        let kept = if is_individual { None } else { memory.bring_up_to_date(self, &request, cluster, timing) };
        let mut candidates = if let Some(candidates) = kept {
            candidates
        } else {
            cluster.hide_all();
            let prepared = self.prepare_timed(&request, cluster, timing);
            if let Some(verdict) = prepared.refused {
                let (plugin, rejection) = self.rejected_by(&verdict, cluster);
                return Found::Never(plugin, rejection);
            }
            let alike = if is_individual { None } else { memory.alike(self, &request, &prepared, cluster, timing) };
            alike.unwrap_or_else(|| Candidates::of(self, Arc::clone(&class), prepared, cluster))
        };
        let held = candidates.held_rows(self, pod, cluster);
        let found = match plan {
            Plan::Only(row) => candidates.only(row, planner, &held, cluster),
            plan => {
                let preferred = if let Plan::Prefer(rows) = plan { rows } else { Vec::new() };
                // The node on which room is made for it goes before those that a plugin prefers.
                let mut first = cluster.nomination(&pod.uid).into_iter().chain(preferred);
                let first = first.find(|row| !held.contains_key(row) && candidates.takes(*row, cluster));
                if let Some(row) = first {
                    Found::of_first(row)
                } else {
                    let mut sample = candidates.sample(self, memory, cluster);
                    let found = candidates.choose_beside(&held, &mut sample, cluster, draw);
                    memory.go_on_after(sample, cluster);
                    match found {
                        Found::Nothing(refusals) => candidates.refused_beside(&held, self, pod, cluster, refusals),
                        found => found,
                    }
                }
            }
        };
        if T::IS_ON {
            candidates.time_one_node(self, &found, cluster, timing);
        }
        if !is_individual {
            memory.keep(candidates, cluster);
        }
        found
    }

    /// The nodes that take a pod, beside the pods for which room is being made.
    pub(crate) fn takers(&self, request: &Request<'_>, cluster: &mut Cluster) -> Vec<Row> {
        let prepared = self.prepare(request, cluster);
        if prepared.is_refused() {
            return Vec::new();
        }
        let mut candidates = Candidates::of(self, Arc::clone(request.class), prepared, cluster);
        let held = candidates.held_rows(self, request.pod, cluster);
        let rows = cluster.rows().map(|(row, _)| row);
        rows.filter(|row| !held.contains_key(row) && candidates.takes(*row, cluster)).collect()
    }

    /// What the plugins say about one node: the first refusal, or the score before anything is normalised.
    pub fn ask(&self, request: &Request<'_>, cluster: &Cluster, row: Row) -> Result<i64, Verdict> {
        let mut prepared = self.prepare(request, cluster);
        prepared.refused.map_or(Ok(()), Err)?;
        prepared.filter(cluster, row)?;
        let scores = prepared.scores.iter_mut().map(|Scorer { weight, score, .. }| {
            let uniform = score.uniform(cluster);
            *weight
                * uniform.unwrap_or_else(|| {
                    score.compare(cluster, &[row]);
                    score.score(cluster, row)
                })
        });
        Ok(scores.sum())
    }

    /// Where the pod is to go, and the plugin that says so.
    fn plan(&self, request: &Request<'_>, cluster: &mut Cluster) -> (u8, Plan) {
        let mut first = (0, Plan::Any);
        for (index, plugin) in (0..).zip(&self.plugins) {
            match plugin.plan(request, self, cluster) {
                plan @ Plan::Prefer(_) if first.1 == Plan::Any => first = (index, plan),
                Plan::Any | Plan::Prefer(_) => {}
                plan => return (index, plan),
            }
        }
        first
    }

    /// The pods for which room is being made on a row, other than for this one, and that go before it. Where nominated pods are
    /// ignored, what stands for a reservation counts all the same, as it does in the original.
    pub(crate) fn nominated_before(&self, pod: &Pod, row: Row, cluster: &Cluster) -> Vec<Arc<Pod>> {
        let mut before = cluster.nominated_before(pod, row);
        if cluster.policy().ignores_nominated {
            before.retain(|other| other.is_reservation());
        }
        before.retain(|other| !self.plugins.iter().any(|plugin| plugin.shares_room(pod, other, cluster)));
        before
    }

    /// What is asked of every node for a pod.
    pub fn prepare(&self, request: &Request<'_>, cluster: &Cluster) -> Prepared {
        self.prepare_timed(request, cluster, &mut Untimed)
    }

    fn prepare_timed(&self, request: &Request<'_>, cluster: &Cluster, timing: &mut impl Timing) -> Prepared {
        let among = Among::default();
        let mut prepared = Prepared { among, filters: Vec::new(), scores: Vec::new(), refused: None };
        for index in &self.filters {
            let plugin = &self.plugins[usize::from(*index)];
            match timing.call(&**plugin, Point::PreFilter, || plugin.filter(request, cluster)) {
                PreFilter::Skip => {}
                PreFilter::Nodes(filter) => prepared.filters.push(Filtering::new(*index, filter)),
                PreFilter::Among(names, filter) => {
                    prepared.among.limit(*index, names);
                    prepared.filters.extend(filter.map(|filter| Filtering::new(*index, filter)));
                }
                PreFilter::None(refusal) => {
                    prepared.refused = Some(Verdict { plugin: *index, refusal });
                    // Where evictions may help, what others say counts too.
                    if !refusal.resolvable {
                        break;
                    }
                }
            }
        }
        prepared.refused = prepared.among.none_left(&self.admits).or(prepared.refused);
        let scores = self.scores.iter().filter_map(|(plugin, weight)| {
            let asks = &self.plugins[usize::from(*plugin)];
            let score = timing.call(&**asks, Point::PreScore, || asks.score(request, cluster))?;
            Some(Scorer::new(*plugin, *weight, score))
        });
        prepared.scores = scores.collect();
        prepared
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

    /// The place of a plugin among those that filter.
    fn place_of_filter(&self, plugin: u8) -> Option<usize> {
        self.filters.iter().position(|known| *known == plugin)
    }

    /// By plugin: the epochs of what it says at all, and of its scores alone.
    fn epochs(&self, cluster: &Cluster) -> Vec<(u64, u64)> {
        self.plugins.iter().map(|plugin| (plugin.epoch(cluster), plugin.score_epoch(cluster))).collect()
    }
}

impl Prepared {
    /// Whether a plugin refuses all nodes.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The first refusal of a node.
    pub fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Verdict> {
        let outside = self.among.leaves_out(cluster, row);
        outside.or_else(|| first_refusal(self.filters.iter(), cluster, row)).map_or(Ok(()), Err)
    }

    /// How many of these pods a node takes beside those that it has, and the verdict about the next one; none where only trying tells.
    /// Where it is as many as this guess, few questions are asked.
    fn room(&self, cluster: &Cluster, row: Row, pods: usize, guess: usize) -> Option<(usize, Option<Verdict>)> {
        if let Some(outside) = self.among.leaves_out(cluster, row) {
            return Some((0, Some(outside)));
        }
        let (mut room, mut refused) = (pods, None);
        for Filtering { plugin, filter, .. } in &self.filters {
            // Most filters take the last of those that all before them take, and so all of them.
            let mut probes = [room.saturating_sub(1), guess.saturating_sub(1), guess].into_iter();
            let (mut least, mut most) = (0, room);
            while least < most {
                let asked = probes.find(|probe| (least..most).contains(probe)).unwrap_or(least + (most - least) / 2);
                match filter.filter_after(cluster, row, asked)? {
                    Ok(()) => least = asked + 1,
                    Err(refusal) => {
                        most = asked;
                        (room, refused) = (most, Some(Verdict { plugin: *plugin, refusal }));
                    }
                }
            }
        }
        Some((room, refused))
    }

    /// The first refusal of a node: with these pods on it, and without them, for they may be what the pod wants to be near.
    pub(crate) fn filter_beside(&mut self, trial: &mut Trial<'_>, row: Row, pods: &[Arc<Pod>]) -> Result<(), Verdict> {
        if pods.is_empty() {
            return self.filter(trial, row);
        }
        for pod in pods {
            trial.place(Arc::clone(pod), row, Holds::default());
            trial.pod(&pod.uid).into_iter().for_each(|placed| self.changed(trial, placed, true));
        }
        let beside = self.filter(trial, row);
        for pod in pods {
            let placed = trial.pod(&pod.uid).cloned();
            trial.remove(&pod.uid);
            if let Some(placed) = &placed {
                self.changed(trial, placed, false);
            }
        }
        beside.and_then(|()| self.filter(trial, row))
    }

    /// A pod was placed or removed since this was prepared.
    pub fn changed(&mut self, cluster: &Cluster, placed: &Placed, is_added: bool) {
        self.filters.iter_mut().for_each(|one| one.filter.changed(cluster, placed, is_added));
    }

    /// Prepares filters and scores again, by their plugins. Says no where what was kept of the rows does not hold any more.
    fn renew(
        &mut self,
        (filters, scores): (&[u8], &[u8]),
        profile: &Profile,
        request: &Request<'_>,
        cluster: &Cluster,
        best: &mut Best,
        timing: &mut impl Timing,
    ) -> bool {
        filters.iter().all(|plugin| self.renew_filter(profile, *plugin, request, cluster, timing))
            && scores.iter().all(|plugin| self.renew_score(profile, *plugin, request, cluster, best, timing))
    }

    /// Prepares a filter again. Says no where what was kept of the rows does not hold any more.
    fn renew_filter(
        &mut self,
        profile: &Profile,
        plugin: u8,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let (Some(asks), Some(place)) = (profile.plugins.get(usize::from(plugin)), profile.place_of_filter(plugin))
        else {
            return true;
        };
        let answer = timing.call(&**asks, Point::PreFilter, || asks.filter(request, cluster));
        let (names, new) = match answer {
            PreFilter::Skip => (None, None),
            PreFilter::Nodes(filter) => (None, Some(filter)),
            PreFilter::Among(names, filter) => (Some(names), filter),
            PreFilter::None(_) => return false,
        };
        if !self.among.is_limited(plugin, names.as_ref()) {
            return false;
        }
        let at = self.filters.partition_point(|known| profile.place_of_filter(known.plugin) < Some(place));
        let old = self.filters.get(at).filter(|known| known.plugin == plugin);
        let new = new.map(|filter| Filtering::new(plugin, filter));
        let inherits = old.zip(new.as_ref()).is_some_and(|(old, new)| old.filter.inherits() && new.filter.inherits());
        let is_local = !inherits && old.into_iter().chain(&new).any(|filter| filter.is_local);
        let replaced = at..at + usize::from(old.is_some());
        self.filters.splice(replaced, new);
        !is_local
    }

    /// Prepares a score again; what the scores of all rows have of it is gone from them. Says no where it is part of them otherwise.
    fn renew_score(
        &mut self,
        profile: &Profile,
        plugin: u8,
        request: &Request<'_>,
        cluster: &Cluster,
        best: &mut Best,
        timing: &mut impl Timing,
    ) -> bool {
        let Some((_, weight)) = profile.scores.iter().find(|(known, _)| *known == plugin) else { return true };
        let asks = profile.plugins.get(usize::from(plugin));
        let new = asks.and_then(|asks| timing.call(&**asks, Point::PreScore, || asks.score(request, cluster)));
        let new = new.map(|score| Scorer::new(plugin, *weight, score));
        let mut old = self.scores.iter().position(|scorer| scorer.plugin == plugin).map(|at| self.scores.remove(at));
        if let Some(old) = &mut old {
            old.withdraw(best);
        }
        let is_local = old.iter().chain(&new).any(|scorer| scorer.is_local);
        self.scores.extend(new.map(|new| new.after(old)));
        !is_local
    }
}

#[cfg(test)]
mod tests;
