//! The choice of a node: one that goes before all others, or the best of those that take the pod.

use std::collections::BTreeMap;

use super::Candidates;
use crate::{
    Found, Profile, Refusal, Refusals, Searched, Verdict,
    cluster::Cluster,
    columns::Row,
    cycle::{CandidateCache, plan::Plan, sample::Sample},
    pod::Pod,
};

impl Candidates {
    /// Takes this row or none.
    pub(in crate::cycle) fn only(
        &self,
        row: Row,
        planner: u8,
        held: &BTreeMap<Row, Verdict>,
        cluster: &Cluster,
    ) -> Found {
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

    /// The row that goes before all others: the nominated one, or else the first of those that a plugin prefers.
    #[inline]
    pub(in crate::cycle) fn first_of(
        &self,
        plan: &Plan,
        pod: &Pod,
        held: &BTreeMap<Row, Verdict>,
        cluster: &Cluster,
    ) -> Option<Row> {
        let preferred: &[Row] = if let Plan::Prefer(rows) = plan { rows } else { &[] };
        let mut first = cluster.nomination(&pod.uid).into_iter().chain(preferred.iter().copied());
        first.find(|row| !held.contains_key(row) && self.takes(*row, cluster))
    }

    /// Chooses among the nodes of the next sample.
    #[inline]
    pub(in crate::cycle) fn choose_of_sample(
        &mut self,
        profile: &Profile,
        pod: &Pod,
        held: &BTreeMap<Row, Verdict>,
        cache: &mut CandidateCache,
        cluster: &mut Cluster,
        draw: impl FnOnce(u32) -> u32,
    ) -> Found {
        let mut sample = profile.sample(&self.prepared, cache, cluster);
        let found = self.choose_beside(held, &mut sample, cluster, draw);
        cache.go_on_after(sample, cluster);
        match found {
            Found::Nothing(refusals) => self.refused_beside(held, profile, pod, cluster, refusals),
            found => found,
        }
    }

    /// Chooses among all rows of a sample but these.
    fn choose_beside(
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
            cluster.exclude_all();
            self.choose_one(sample, constant, cluster, draw)
        } else if self.prepared.is_local(cluster) {
            self.choose_by_local(constant, cluster, draw)
        } else if let Some(rows) = self.prepared.scored_rows(cluster) {
            self.choose_with_scored(&rows, constant, cluster, draw)
        } else {
            cluster.exclude_all();
            self.choose_one(sample, constant, cluster, draw)
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
            cluster.exclude_all();
        }
        self.prepared.add_wide_scores(cluster, &feasible, &mut totals);
        let highest = totals.iter().copied().max();
        if let Some(score) = highest.filter(|highest| self.best.top().is_none_or(|(local, _)| *highest > local)) {
            let best = feasible.iter().zip(&totals).filter(|(_, total)| **total == score).map(|(row, _)| *row);
            return one_of(&best.collect::<Vec<Row>>(), score + constant, searched(cluster, self.best.len()), draw);
        }
        feasible.iter().zip(totals).for_each(|(row, total)| self.best.set(*row, Some(total)));
        let found = self.choose_by_local(constant, cluster, draw);
        feasible.iter().zip(local).for_each(|(row, score)| self.best.set(*row, Some(score)));
        found
    }

    /// Asks the filters and scores that are not local about every node of a sample.
    fn choose_one(
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
            sample.evaluated += 1;
            let known = self.verdicts.get(row);
            if let Some(verdict) = self.prepared.wide_verdict(cluster, row, known) {
                refusals.add(verdict, row);
            } else {
                feasible.push(row);
                totals.push(constant + self.best.score(row).unwrap_or(0));
            }
        }
        self.prepared.scores.iter().for_each(|scorer| scorer.add_scores(&feasible, &mut totals));
        self.prepared.add_wide_scores(cluster, &feasible, &mut totals);
        let Some(best) = totals.iter().copied().max() else { return Found::Nothing(refusals) };
        let passed = feasible.len();
        let tied: Vec<Row> =
            feasible.into_iter().zip(totals).filter(|(_, total)| *total == best).map(|(row, _)| row).collect();
        one_of(&tied, best, Searched { evaluated: number(sample.evaluated), feasible: number(passed) }, draw)
    }
}

/// Chooses among rows that have the best score, of which there is at least one.
fn one_of(tied: &[Row], score: i64, searched: Searched, draw: impl FnOnce(u32) -> u32) -> Found {
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
