//! What is known about the nodes for pods of one class.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::uid::Uid;

use super::{
    Filtering, Found, Memory, Prepared, Profile, Scorer, Verdict, first_refusal, sample::Sample, verdicts::Verdicts,
};
use crate::{
    best::Best,
    cluster::{Class, Cluster, Position},
    columns::Row,
    plugin::{Refusal, Refusals, Request, Searched},
    pod::Pod,
    timing::{Point, Timing},
};

/// The local answers for all rows, with what is to be asked beyond them.
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
    /// The pods that were not there for the class when these were asked.
    offered: Arc<[(Row, Uid)]>,
    /// By plugin: of what it says at all, and of its scores alone.
    epochs: Vec<(u64, u64)>,
    /// How often plugins were asked again because of that.
    pub(super) renewals: u64,
    /// By which these are kept; none where they never were.
    pub(super) number: Option<u64>,
}

impl Candidates {
    pub(super) fn of(profile: &Profile, class: Arc<Class>, prepared: Prepared, cluster: &Cluster) -> Self {
        let (best, position, epochs) = (Best::default(), cluster.position(), profile.epochs(cluster));
        let offered = Arc::clone(cluster.offered());
        let (verdicts, refusals, renewals, number) = (Verdicts::default(), None, 0, None);
        let mut candidates =
            Self { class, prepared, best, verdicts, refusals, position, offered, epochs, renewals, number };
        candidates.ask_all(cluster);
        candidates
    }

    /// Whether the same is asked for a pod of another class, for which this was prepared.
    pub(super) fn is_asked_as(
        &self,
        profile: &Profile,
        request: &Request<'_>,
        prepared: &Prepared,
        cluster: &Cluster,
    ) -> bool {
        let (own, other) = (self.class.template(), request.template());
        let is_offered = self.is_offered(cluster);
        own.differs_by_marks_alone(other)
            && self.prepared.among == prepared.among
            && self.prepared.plugins().eq(prepared.plugins())
            && prepared.plugins().all(|plugin| {
                let asks = profile.plugins.get(usize::from(plugin));
                asks.is_some_and(|asks| asks.marks().are_equal(own, other, is_offered))
            })
    }

    /// Whether pods are not there for the pod that is tried, or were not for the last one.
    pub(super) fn is_offered(&self, cluster: &Cluster) -> bool {
        !(self.offered.is_empty() && cluster.offered().is_empty())
    }

    /// Whether these are the answers for all rows that a search finds which begins anew.
    pub(super) fn are_as_anew(&self, profile: &Profile, request: &Request<'_>, cluster: &mut Cluster) -> bool {
        cluster.hide_all();
        let anew = Self::of(profile, Arc::clone(&self.class), profile.prepare(request, cluster), cluster);
        let mut rows = cluster.rows().map(|(row, _)| row);
        rows.all(|row| self.best.score(row) == anew.best.score(row) && self.verdicts.get(row) == anew.verdicts.get(row))
    }

    fn ask_all(&mut self, cluster: &Cluster) {
        let mut scores = vec![None; cluster.width()];
        self.verdicts = Verdicts::none(cluster.width());
        for (row, _) in cluster.rows() {
            match self.prepared.local_verdict(cluster, row) {
                None => scores[row.index()] = Some(self.prepared.local_score(cluster, row)),
                verdict => _ = self.verdicts.set(row, verdict),
            }
        }
        self.best = Best::new(&scores);
        self.prepared.scores.iter_mut().for_each(Scorer::clear);
        self.scale(cluster);
        self.position = cluster.position();
    }

    fn scale(&mut self, cluster: &Cluster) {
        self.prepared.scores.iter_mut().for_each(|scorer| scorer.scale(cluster, &mut self.best));
    }

    /// Asks the nodes that have changed. Says no where everything is to be asked anew.
    pub(super) fn bring_up_to_date(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let is_wide_enough = cluster.width() <= self.verdicts.len();
        let Some(changed) = cluster.changed_since(self.position).filter(|_| is_wide_enough) else { return false };
        let mut rows = Vec::new();
        changed.for_each(|row| rows.push(row));
        let mut changed = rows;
        let offered = Arc::clone(cluster.offered());
        if !Arc::ptr_eq(&self.offered, &offered) {
            changed.extend(rows_of_difference(&self.offered, &offered));
            changed.sort_unstable();
            changed.dedup();
            self.offered = offered;
        }
        if !self.prepared.asks_single_rows(cluster) {
            cluster.hide_all();
        }
        if !self.renew_heirs(profile, request, cluster, timing) {
            return false;
        }
        for row in changed {
            cluster.hide_on(row);
            self.ask(cluster, row);
        }
        self.position = cluster.position();
        let is_renewed = self.renew(profile, request, cluster, timing);
        self.scale(cluster);
        is_renewed
    }

    fn ask(&mut self, cluster: &Cluster, row: Row) {
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

    /// Prepares again what inherits its answers.
    fn renew_heirs(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let Self { prepared, best, .. } = self;
        let filters = prepared.filters.iter().filter(|known| known.filter.inherits());
        let filters: Vec<u8> = filters.map(|known| known.plugin).collect();
        let scores = prepared.scores.iter().filter(|scorer| scorer.score.inherits()).map(|scorer| scorer.plugin);
        let scores: Vec<u8> = scores.collect();
        prepared.renew((&filters, &scores), profile, request, cluster, best, timing)
    }

    /// Prepares again what does not follow the rows, and what may say something else by now.
    fn renew(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) -> bool {
        let epochs = profile.epochs(cluster);
        let known = std::mem::replace(&mut self.epochs, epochs);
        self.renewals += u64::from(known != self.epochs);
        let changed = |is_changed: fn((u64, u64), (u64, u64)) -> bool| {
            let epochs = known.iter().zip(&self.epochs);
            let changed = (0_u8..).zip(epochs).filter(move |(_, (old, new))| is_changed(**old, **new));
            changed.map(|(plugin, _)| plugin)
        };
        let Self { prepared, best, .. } = self;
        let filters =
            prepared.filters.iter().filter(|Filtering { filter, .. }| !filter.follows_rows() && !filter.inherits());
        let filters = filters.map(|known| known.plugin);
        let scores = prepared.scores.iter().filter(|scorer| !scorer.score.follows_rows() && !scorer.score.inherits());
        let scores = scores.map(|scorer| scorer.plugin);
        let filters: Vec<u8> = filters.chain(changed(|old, new| old.0 != new.0)).collect();
        let scores: Vec<u8> = scores.chain(changed(|old, new| old != new)).collect();
        if !(filters.is_empty() && scores.is_empty()) {
            cluster.hide_all();
        }
        prepared.renew((&filters, &scores), profile, request, cluster, best, timing)
    }

    /// The rows that would take the pod, but not beside the pods for which room is being made there and that go before it.
    pub(super) fn held_rows(&mut self, profile: &Profile, pod: &Pod, cluster: &mut Cluster) -> BTreeMap<Row, Verdict> {
        let nominated = cluster.nominated_rows();
        if !nominated.is_empty() {
            cluster.hide_all();
        }
        let rows: Vec<Row> = nominated.into_iter().filter(|row| self.takes(*row, cluster)).collect();
        let refused = rows.into_iter().filter_map(|row| {
            let beside = profile.nominated_before(pod, row, cluster);
            let verdict = self.prepared.filter_beside(&mut cluster.trial(), row, &beside).err()?;
            Some((row, verdict))
        });
        refused.collect()
    }

    /// Whether the node of a row takes the pods of the class.
    pub(super) fn takes(&self, row: Row, cluster: &Cluster) -> bool {
        self.best.score(row).is_some() && self.prepared.wide_verdict(cluster, row, None).is_none()
    }

    /// Takes this row or none.
    pub(super) fn only(&self, row: Row, planner: u8, held: &BTreeMap<Row, Verdict>, cluster: &Cluster) -> Found {
        if !held.contains_key(&row) && self.takes(row, cluster) {
            return Found::of_first(row);
        }
        let known = self.verdicts.get(row);
        let refused = held.get(&row).copied().or_else(|| self.prepared.wide_verdict(cluster, row, known));
        let unplanned = Verdict { plugin: planner, refusal: Refusal::UNPLANNED };
        let mut refusals = Refusals::default();
        for (other, _) in cluster.rows() {
            refusals.add(refused.filter(|_| other == row).unwrap_or(unplanned), other);
        }
        Found::Nothing(refusals)
    }

    /// A search that has found nothing, where nodes on which room is being made say why they refuse the pod beside those for
    /// which it is made, though they refuse it without them too.
    pub(super) fn refused_beside(
        &mut self,
        held: &BTreeMap<Row, Verdict>,
        profile: &Profile,
        pod: &Pod,
        cluster: &mut Cluster,
        mut refusals: Refusals,
    ) -> Found {
        for row in cluster.nominated_rows().into_iter().filter(|row| !held.contains_key(row)) {
            let beside = profile.nominated_before(pod, row, cluster);
            let without = self.prepared.filter(cluster, row).err();
            let with = self.prepared.filter_beside(&mut cluster.trial(), row, &beside).err();
            let (Some(without), Some(with)) = (without, with) else { continue };
            refusals.change(without, with, row);
        }
        Found::Nothing(refusals)
    }

    /// Times filters and scores by asking them about one node once more: the one that was found, or one that was refused last. Scores
    /// that compare nodes with each other say nothing about one alone.
    pub(super) fn time_one_node(
        &self,
        profile: &Profile,
        found: &Found,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) {
        let row = match found {
            Found::Node { row, .. } => Some(*row),
            Found::Nothing(refusals) => refusals.nearest(),
            Found::Never(..) => None,
        };
        let Some(row) = row else { return };
        cluster.hide_on(row);
        let cluster = &*cluster;
        for Filtering { plugin, filter, .. } in &self.prepared.filters {
            let Some(asks) = profile.plugins.get(usize::from(*plugin)) else { continue };
            if timing.call(&**asks, Point::Filter, || filter.filter(cluster, row)).is_err() {
                return;
            }
        }
        if !matches!(found, Found::Node { .. }) {
            return;
        }
        for Scorer { plugin, score, .. } in self.prepared.scores.iter().filter(|scorer| scorer.is_part_of_rows()) {
            if let Some(asks) = profile.plugins.get(usize::from(*plugin)) {
                timing.call(&**asks, Point::Score, || score.score(cluster, row));
            }
        }
    }

    /// The nodes among which is chosen next.
    pub(super) fn sample(&self, profile: &Profile, memory: &Memory, cluster: &Cluster) -> Sample {
        profile.sample(&self.prepared, memory, cluster)
    }

    /// Chooses among all rows of a sample but these.
    pub(super) fn choose_beside(
        &mut self,
        held: &BTreeMap<Row, Verdict>,
        sample: &mut Sample,
        cluster: &mut Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        if held.is_empty() {
            return self.choose(sample, cluster, draw);
        }
        let scores: Vec<Option<i64>> = held.keys().map(|row| self.best.score(*row)).collect();
        self.refusals = None;
        for (row, verdict) in held {
            self.best.set(*row, None);
            self.verdicts.set(*row, Some(*verdict));
        }
        let is_held = |row: Row| held.contains_key(&row);
        self.prepared.scores.iter_mut().for_each(|scorer| scorer.scale_beside(&mut self.best, is_held));
        let found = self.choose(sample, cluster, draw);
        self.prepared.scores.iter_mut().for_each(|scorer| scorer.scale_beside(&mut self.best, |_| false));
        for (row, score) in held.keys().zip(scores) {
            self.best.set(*row, score);
            self.verdicts.set(*row, None);
        }
        self.refusals = None;
        found
    }

    fn choose(&mut self, sample: &mut Sample, cluster: &mut Cluster, draw: impl FnOnce(u32) -> u32) -> Found {
        let constant = self.prepared.uniform_score(cluster);
        if !sample.is_of_all() {
            cluster.hide_all();
            self.choose_among(sample, constant, cluster, draw)
        } else if self.prepared.is_local(cluster) {
            self.choose_by_local(constant, cluster, draw)
        } else if let Some(rows) = self.prepared.scored_rows(cluster) {
            self.choose_with_scored(&rows, constant, cluster, draw)
        } else {
            cluster.hide_all();
            self.choose_among(sample, constant, cluster, draw)
        }
    }

    fn choose_by_local(&mut self, constant: i64, cluster: &Cluster, draw: impl FnOnce(u32) -> u32) -> Found {
        let found = self.best.top().and_then(|(score, ties)| {
            let row = self.best.choose(draw(ties)).or_else(|| self.best.choose(0))?;
            let searched = searched(cluster, self.best.len());
            Some(Found::Node { row, score: score + constant, ties, searched })
        });
        let Self { verdicts, refusals, .. } = self;
        found.unwrap_or_else(|| Found::Nothing(refusals.get_or_insert_with(|| verdicts.refusals()).clone()))
    }

    /// Adds the scores of the few rows that have one beyond what is local, and chooses among all.
    fn choose_with_scored(
        &mut self,
        rows: &[Row],
        constant: i64,
        cluster: &mut Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        let feasible = rows.iter().filter_map(|row| Some((*row, self.best.score(*row)?)));
        let (feasible, local): (Vec<Row>, Vec<i64>) = feasible.unzip();
        let mut totals = local.clone();
        if !self.prepared.scores.iter().all(|scorer| !scorer.is_wide(cluster) || scorer.has_rated(&feasible)) {
            cluster.hide_all();
        }
        self.prepared.add_wide_scores(cluster, &feasible, &mut totals);
        let highest = totals.iter().copied().max();
        if let Some(score) = highest.filter(|highest| self.best.top().is_none_or(|(local, _)| *highest > local)) {
            let best = feasible.iter().zip(&totals).filter(|(_, total)| **total == score).map(|(row, _)| *row);
            return among(&best.collect::<Vec<Row>>(), score + constant, searched(cluster, self.best.len()), draw);
        }
        feasible.iter().zip(totals).for_each(|(row, total)| self.best.set(*row, Some(total)));
        let found = self.choose_by_local(constant, cluster, draw);
        feasible.iter().zip(local).for_each(|(row, score)| self.best.set(*row, Some(score)));
        found
    }

    /// Asks the filters and scores that are not local about every node of a sample.
    fn choose_among(
        &mut self,
        sample: &mut Sample,
        constant: i64,
        cluster: &Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        let (mut refusals, mut feasible, mut totals) = (Refusals::default(), Vec::new(), Vec::new());
        for row in sample.rows(cluster) {
            if sample.is_enough(feasible.len()) {
                break;
            }
            sample.asked += 1;
            let known = self.verdicts.get(row);
            if let Some(verdict) = self.prepared.wide_verdict(cluster, row, known) {
                refusals.add(verdict, row);
            } else {
                feasible.push(row);
                totals.push(constant + self.best.score(row).unwrap_or(0));
            }
        }
        self.prepared.scores.iter().for_each(|scorer| scorer.add_among(&feasible, &mut totals));
        self.prepared.add_wide_scores(cluster, &feasible, &mut totals);
        let Some(best) = totals.iter().copied().max() else { return Found::Nothing(refusals) };
        let passed = feasible.len();
        let tied: Vec<Row> =
            feasible.into_iter().zip(totals).filter(|(_, total)| *total == best).map(|(row, _)| row).collect();
        among(&tied, best, Searched { evaluated: number(sample.asked), feasible: number(passed) }, draw)
    }
}

/// Chooses among rows that have the best score, of which there is at least one.
fn among(tied: &[Row], score: i64, searched: Searched, draw: impl FnOnce(u32) -> u32) -> Found {
    let ties = u32::try_from(tied.len()).unwrap_or(u32::MAX);
    match tied.get(draw(ties) as usize).or(tied.first()) {
        Some(row) => Found::Node { row: *row, score, ties, searched },
        None => Found::Nothing(Refusals::default()),
    }
}

fn number(nodes: usize) -> u32 {
    u32::try_from(nodes).unwrap_or(u32::MAX)
}

fn searched(cluster: &Cluster, feasible: usize) -> Searched {
    Searched { evaluated: number(cluster.len()), feasible: number(feasible) }
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

impl Prepared {
    /// The plugins that ask nodes something, those that filter first.
    fn plugins(&self) -> impl Iterator<Item = u8> {
        let filters = self.filters.iter().map(|filtering| filtering.plugin);
        filters.chain(self.scores.iter().map(|scorer| scorer.plugin))
    }

    /// Whether the answers for a row depend on what is on that row alone, as far as they are not prepared again.
    fn asks_single_rows(&self, cluster: &Cluster) -> bool {
        self.filters.iter().all(|filter| filter.is_local)
            && self.scores.iter().all(|scorer| scorer.score.inherits() || !scorer.is_wide(cluster))
    }

    /// Whether nothing is to be asked beyond what is local now.
    fn is_local(&self, cluster: &Cluster) -> bool {
        self.filters.iter().all(|filter| filter.is_local) && self.scores.iter().all(|scorer| !scorer.is_wide(cluster))
    }

    /// The only rows whose score is not local, where there are few of them and all filters are local.
    fn scored_rows(&self, cluster: &Cluster) -> Option<Vec<Row>> {
        if !self.filters.iter().all(|filter| filter.is_local) {
            return None;
        }
        let wide = self.scores.iter().filter(|scorer| scorer.is_wide(cluster));
        let mut rows = Vec::new();
        for scorer in wide {
            rows.extend(scorer.score.rows(cluster)?);
        }
        rows.sort_unstable();
        rows.dedup();
        Some(rows)
    }

    fn local_verdict(&self, cluster: &Cluster, row: Row) -> Option<Verdict> {
        let local = self.filters.iter().filter(|filter| filter.is_local);
        self.among.leaves_out(cluster, row).or_else(|| first_refusal(local, cluster, row))
    }

    fn local_score(&self, cluster: &Cluster, row: Row) -> i64 {
        self.scores.iter().map(|scorer| scorer.local(cluster, row)).sum()
    }

    /// The first refusal of a node, where the first one of local filters is known.
    fn wide_verdict(&self, cluster: &Cluster, row: Row, known: Option<Verdict>) -> Option<Verdict> {
        if known.is_some_and(|known| known.is_outside()) {
            return known;
        }
        let before = self.filters.iter().take_while(|filter| known.is_none_or(|known| known.plugin != filter.plugin));
        first_refusal(before.filter(|filter| !filter.is_local), cluster, row).or(known)
    }

    /// The sum of scores that are the same for every node.
    fn uniform_score(&self, cluster: &Cluster) -> i64 {
        let wide = self.scores.iter().filter(|scorer| !scorer.is_local);
        wide.filter_map(|Scorer { weight, score, .. }| Some(weight * score.uniform(cluster)?)).sum()
    }

    fn add_wide_scores(&mut self, cluster: &Cluster, rows: &[Row], totals: &mut [i64]) {
        for scorer in self.scores.iter_mut().filter(|scorer| scorer.is_wide(cluster)) {
            let scores = scorer.rate(cluster, rows);
            totals.iter_mut().zip(scores).for_each(|(total, score)| *total += scorer.weight * score);
        }
    }
}
