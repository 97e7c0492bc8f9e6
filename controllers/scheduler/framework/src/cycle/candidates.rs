//! Candidates of one class of pods: cached verdicts and scores of all nodes, and how they follow the rows that have changed.

mod choice;
mod local;
mod nominated;
mod renewal;
mod timed;

use std::sync::Arc;

use koord_core::uid::Uid;

use super::{Prepared, Profile, scorer::Scorer, verdicts::Verdicts};
use crate::{
    Refusals, Request,
    best::Best,
    cluster::{Class, Cluster, Position},
    columns::Row,
    timing::Timing,
};

/// The local verdicts and scores of all rows, with the filters and scores that are not local.
pub(super) struct Candidates {
    pub(super) class: Arc<Class>,
    prepared: Prepared,
    /// The sum of the local scores of each row that no local filter refuses.
    best: Best,
    /// The first refusal of a local filter.
    verdicts: Verdicts,
    /// How many nodes each verdict refuses; none where they are to be counted.
    refusals: Option<Refusals>,
    position: Position,
    /// By which numbers of resources they were evaluated.
    resources: u64,
    /// The pods that were not there for the class when these were evaluated.
    excluded: Arc<[(Row, Uid)]>,
    /// By plugin: of what it says at all, and of its scores alone.
    epochs: Vec<(u64, u64)>,
    /// How often plugins were called again because of that.
    pub(super) renewals: u64,
    /// By which these are kept; none where they never were.
    pub(super) number: Option<u64>,
}

impl Candidates {
    pub(super) fn of(profile: &Profile, class: Arc<Class>, prepared: Prepared, cluster: &Cluster) -> Self {
        let (best, position, epochs) = (Best::default(), cluster.position(), profile.epochs(cluster));
        let excluded = Arc::clone(cluster.to_exclude());
        let (verdicts, refusals, renewals, number) = (Verdicts::default(), None, 0, None);
        let resources = cluster.resources_epoch();
        let mut candidates =
            Self { class, prepared, best, verdicts, refusals, position, resources, excluded, epochs, renewals, number };
        candidates.evaluate_all(cluster);
        candidates
    }

    /// How long the text is of which the template of its class was made.
    pub(super) fn text_length(&self) -> usize {
        self.class.template().text_length
    }

    /// Whether pods of another class, for which this was prepared, have equal verdicts and scores.
    pub(super) fn is_evaluated_like(
        &self,
        profile: &Profile,
        request: &Request<'_>,
        prepared: &Prepared,
        cluster: &Cluster,
    ) -> bool {
        let (template, other) = (self.class.template(), request.template());
        let is_restored = self.is_restored(cluster);
        template.differs_by_marks_alone(other)
            && self.resources == cluster.resources_epoch()
            && self.prepared.subset == prepared.subset
            && self.prepared.plugins().eq(prepared.plugins())
            && prepared.plugins().all(|plugin| {
                let registration = profile.plugins.get(usize::from(plugin));
                registration.is_some_and(|one| one.signature().are_equal(template, other, is_restored))
            })
    }

    /// Whether pods are not there for the pod that is tried, or were not for the last one.
    pub(super) fn is_restored(&self, cluster: &Cluster) -> bool {
        !(self.excluded.is_empty() && cluster.to_exclude().is_empty())
    }

    /// Whether these are the answers for all rows that a search finds which begins anew.
    pub(super) fn are_as_anew(&self, profile: &Profile, request: &Request<'_>, cluster: &mut Cluster) -> bool {
        cluster.exclude_all();
        let anew = Self::of(profile, Arc::clone(&self.class), profile.prepare(request, cluster), cluster);
        let mut rows = cluster.rows().map(|(row, _)| row);
        rows.all(|row| self.best.score(row) == anew.best.score(row) && self.verdicts.get(row) == anew.verdicts.get(row))
    }

    fn evaluate_all(&mut self, cluster: &Cluster) {
        (self.best, self.verdicts) = self.prepared.evaluate_all(cluster);
        self.prepared.scores.iter_mut().for_each(Scorer::clear);
        self.scale(cluster);
        self.position = cluster.position();
    }

    fn scale(&mut self, cluster: &Cluster) {
        self.prepared.scores.iter_mut().for_each(|scorer| scorer.scale(cluster, &mut self.best));
    }

    /// Evaluates the nodes that have changed. Returns false where all nodes are to be evaluated anew.
    pub(super) fn bring_up_to_date(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let holds = cluster.width() <= self.verdicts.len() && cluster.resources_epoch() == self.resources;
        let Some(changed) = cluster.changed_since(self.position).filter(|_| holds) else { return false };
        let mut rows = Vec::new();
        changed.for_each(|row| rows.push(row));
        let mut changed = rows;
        let excluded = Arc::clone(cluster.to_exclude());
        if !Arc::ptr_eq(&self.excluded, &excluded) {
            changed.extend(rows_of_difference(&self.excluded, &excluded));
            changed.sort_unstable();
            changed.dedup();
            self.excluded = excluded;
        }
        if !self.prepared.depends_on_single_rows(cluster) {
            cluster.exclude_all();
        }
        if !self.renew_heirs(profile, request, cluster, timing) {
            return false;
        }
        for row in changed {
            cluster.exclude_on(row);
            self.evaluate(cluster, row);
        }
        self.position = cluster.position();
        let is_renewed = self.renew(profile, request, cluster, timing);
        self.scale(cluster);
        is_renewed
    }

    fn evaluate(&mut self, cluster: &Cluster, row: Row) {
        self.prepared.filters.iter_mut().for_each(|filter| filter.refresh(cluster, row));
        let is_there = cluster.node(row).is_some();
        let verdict = if is_there { self.prepared.local_verdict(cluster, row) } else { None };
        let is_taken = is_there && verdict.is_none();
        let score: i64 = self.prepared.scores.iter_mut().map(|scorer| scorer.row_changed(cluster, row, is_taken)).sum();
        self.best.set(row, is_taken.then_some(score));
        if self.verdicts.set(row, verdict) {
            self.refusals = None;
        }
    }

    /// Whether the node of a row takes the pods of the class.
    pub(super) fn takes(&self, row: Row, cluster: &Cluster) -> bool {
        self.best.score(row).is_some() && self.prepared.wide_verdict(cluster, row, None).is_none()
    }
}

/// The rows of what only one of two sorted lists has.
fn rows_of_difference(left: &[(Row, Uid)], right: &[(Row, Uid)]) -> Vec<Row> {
    let (mut rows, mut left, mut right) = (Vec::new(), left.iter().peekable(), right.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (None, None) => return rows,
            (Some(one), Some(other)) if one == other => {
                left.next();
                right.next();
                continue;
            }
            (Some(one), Some(other)) if one > other => right.next(),
            (Some(_), _) => left.next(),
            (None, Some(_)) => right.next(),
        };
        rows.extend(next.map(|(row, _)| *row));
    }
}
