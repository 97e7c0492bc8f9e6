//! The filters and scores of a profile for one pod, or for all pods of a class: prepared once, and run for any node.

use std::sync::Arc;

use super::{
    Profile, Verdict,
    filtering::{Filtering, first_refusal},
    scorer::Scorer,
};
use crate::{
    NodeSubset, PreparedFilter, Request,
    cluster::{Cluster, Placed, Trial},
    columns::Row,
    hold::Holds,
    pod::Pod,
    timing::{ExtensionPoint, Timing, Untimed},
};

/// The prepared filters and scores of a profile for one pod, or for all pods of a class.
pub struct Prepared {
    pub(super) subset: NodeSubset,
    pub(super) filters: Vec<Filtering>,
    pub(super) scores: Vec<Scorer>,
    /// A plugin that refuses all nodes.
    pub(super) refused: Option<Verdict>,
}

impl Profile {
    /// Prepares filters and scores for a pod.
    pub fn prepare(&self, request: &Request<'_>, cluster: &Cluster) -> Prepared {
        self.prepare_timed(request, cluster, &mut Untimed)
    }

    /// The same, with the time that single plugins take.
    pub(super) fn prepare_timed(&self, request: &Request<'_>, cluster: &Cluster, timing: &mut impl Timing) -> Prepared {
        let subset = NodeSubset::default();
        let mut prepared = Prepared { subset, filters: Vec::new(), scores: Vec::new(), refused: None };
        for (index, plugin, point) in self.at(&self.filters, |plugin| &plugin.filter) {
            match timing.call(plugin, ExtensionPoint::PreFilter, || point.prepare_filter(request, cluster)) {
                PreparedFilter::Skip => {}
                PreparedFilter::Nodes(filter) => prepared.filters.push(Filtering::new(index, filter)),
                PreparedFilter::NodeNames(names, filter) => {
                    prepared.subset.limit(index, names);
                    prepared.filters.extend(filter.map(|filter| Filtering::new(index, filter)));
                }
                PreparedFilter::None(refusal) => {
                    prepared.refused = Some(Verdict { plugin: index, refusal });
                    // Where evictions may help, what others say counts too.
                    if !refusal.resolvable {
                        break;
                    }
                }
            }
        }
        prepared.refused = prepared.subset.none_left(&self.admits).or(prepared.refused);
        let scores = self.scores.iter().filter_map(|(plugin, weight)| {
            let registration = &self.plugins[usize::from(*plugin)];
            let point = registration.score.as_ref()?;
            let score =
                timing.call(registration, ExtensionPoint::PreScore, || point.prepare_score(request, cluster))?;
            Some(Scorer::new(*plugin, *weight, score))
        });
        prepared.scores = scores.collect();
        prepared
    }

    /// What the plugins say about one node: the first refusal, or the score before anything is normalised.
    pub fn evaluate(&self, request: &Request<'_>, cluster: &Cluster, row: Row) -> Result<i64, Verdict> {
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
}

impl Prepared {
    /// Whether a plugin refuses all nodes.
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// The first refusal of a node.
    pub fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Verdict> {
        let outside = self.subset.leaves_out(cluster, row);
        outside.or_else(|| first_refusal(self.filters.iter(), cluster, row)).map_or(Ok(()), Err)
    }

    /// How many of these pods a node takes beside those that it has, and the verdict about the next one; `None` when only trying shows it.
    /// Where it is as many as this guess, few questions are asked.
    pub(super) fn capacity(
        &self,
        cluster: &Cluster,
        row: Row,
        pods: usize,
        guess: usize,
    ) -> Option<(usize, Option<Verdict>)> {
        if let Some(outside) = self.subset.leaves_out(cluster, row) {
            return Some((0, Some(outside)));
        }
        let (mut capacity, mut refused) = (pods, None);
        for Filtering { plugin, filter, .. } in &self.filters {
            // Most filters take the last of those that all before them take, and so all of them.
            let mut probes = [capacity.saturating_sub(1), guess.saturating_sub(1), guess].into_iter();
            let (mut least, mut most) = (0, capacity);
            while least < most {
                let pods_before =
                    probes.find(|probe| (least..most).contains(probe)).unwrap_or(least + (most - least) / 2);
                match filter.filter_after(cluster, row, pods_before)? {
                    Ok(()) => least = pods_before + 1,
                    Err(refusal) => {
                        most = pods_before;
                        (capacity, refused) = (most, Some(Verdict { plugin: *plugin, refusal }));
                    }
                }
            }
        }
        Some((capacity, refused))
    }

    /// The first refusal of a node: with these pods on it, and without them, for the pod may have an affinity to them.
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
}
