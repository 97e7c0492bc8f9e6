//! How one plugin compares nodes, and what is kept of its scores.

use super::all_rows::APART;
use crate::{NodeScore, Scale, best::Best, cluster::Cluster, columns::Row};

/// How one plugin compares nodes.
pub(super) struct Scorer {
    pub(super) plugin: u8,
    pub(super) weight: i64,
    pub(super) score: Box<dyn NodeScore>,
    /// What the score says of itself is looked at with every row, and does not change: whether it depends on the class and the node alone.
    pub(super) is_local: bool,
    /// Whether scores hold for the next pod of the class.
    inherits: bool,
    /// How scores are scaled.
    scale: Option<Scale>,
    /// By row, where scores are scaled and differ: none of nodes that are refused.
    scaled: Vec<Option<i64>>,
    /// The highest of them, or of those that count, by which they are scaled; none where there is none.
    highest: Option<i64>,
    /// The highest of them as they are now.
    now: Highest,
    /// By row, as far as any is known: the scores that hold for the next pod of the class.
    inherited: Vec<Option<i64>>,
}

/// The highest of some scores.
#[derive(Clone, Copy, Debug, Default)]
struct Highest {
    /// None of no scores.
    score: Option<i64>,
    /// How many rows have it.
    rows: usize,
}

impl Highest {
    fn add(&mut self, score: Option<i64>) {
        if score > self.score {
            *self = Self { score, rows: 1 };
        } else if score.is_some() && score == self.score {
            self.rows += 1;
        }
    }

    fn remove(&mut self, score: Option<i64>) {
        if score.is_some() && score == self.score {
            self.rows -= 1;
        }
    }

    /// Whether no row has it any more, so that another one is to be looked for.
    fn is_gone(&self) -> bool {
        self.score.is_some() && self.rows == 0
    }
}

impl Scorer {
    pub(super) fn new(plugin: u8, weight: i64, score: Box<dyn NodeScore>) -> Self {
        let (scale, is_local, inherits) = (score.scale(), score.is_local(), score.inherits());
        let (scaled, inherited, highest, now) = (Vec::new(), Vec::new(), None, Highest::default());
        Self { plugin, weight, score, is_local, inherits, scale, scaled, highest, now, inherited }
    }

    /// The same with what it inherits.
    pub(super) fn after(self, old: Option<Self>) -> Self {
        let inherited = old.filter(|old| old.inherits && self.inherits).map(|old| old.inherited);
        Self { inherited: inherited.unwrap_or_default(), ..self }
    }

    /// Whether what is kept of each row has this in it.
    pub(super) fn is_part_of_rows(&self) -> bool {
        self.is_local || self.scale.is_some()
    }

    /// Whether nodes are to be compared with each other.
    pub(super) fn is_wide(&self, cluster: &Cluster) -> bool {
        !self.is_part_of_rows() && self.score.uniform(cluster).is_none()
    }

    /// What a row has of the scores that are scaled.
    pub(super) fn scaled(&self, row: Row) -> i64 {
        self.scaled_beside(row, self.highest)
    }

    fn scaled_beside(&self, row: Row, highest: Option<i64>) -> i64 {
        let score = self.scaled.get(row.index()).copied().flatten();
        score.map_or(0, |score| self.scale_by(score, highest))
    }

    fn scale_by(&self, score: i64, highest: Option<i64>) -> i64 {
        self.scale.map_or(0, |scale| self.weight * scale(score, highest.unwrap_or(0)))
    }

    /// Adds to the scores of all rows what depends on those that are scaled. Few of these differ, and each costs a division: what was
    /// added lately is remembered.
    fn add_by_scaled(&self, best: &mut Best, of: impl Fn(i64) -> i64) {
        const REMEMBERED: usize = 128;
        let mut lately = [None; REMEMBERED];
        best.add(&self.scaled, |score| {
            let place = &mut lately[score as usize % REMEMBERED];
            match *place {
                Some((known, added)) if known == score => added,
                _ => {
                    let added = of(score);
                    *place = Some((score, added));
                    added
                }
            }
        });
    }

    /// The scores of these rows, before anything is scaled.
    pub(super) fn of_rows(&self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        let scores = self.score.score_rows(cluster, rows);
        let is_own = |(row, score): (&Row, &i64)| self.score.score(cluster, *row) == *score;
        debug_assert!(rows.len() == scores.len() && rows.iter().zip(&scores).all(is_own), "{APART}");
        scores
    }

    /// What the score of a row has of this, where it depends on the class and the node alone.
    pub(super) fn local(&self, cluster: &Cluster, row: Row) -> i64 {
        if self.is_local { self.weight * self.score.score(cluster, row) } else { 0 }
    }

    /// A row has changed, and takes the pods of the class or does not. Gives what its score has of this, where it does.
    pub(super) fn row_changed(&mut self, cluster: &Cluster, row: Row, is_taken: bool) -> i64 {
        if self.is_local {
            return if is_taken { self.local(cluster, row) } else { 0 };
        }
        if self.scale.is_none() {
            self.score.refresh(cluster, row);
        }
        if self.inherits {
            let score = is_taken.then(|| self.score.score(cluster, row));
            if let Some(known) = self.inherited.get_mut(row.index()) {
                *known = score;
            }
        }
        if let Some(known) = self.scaled.get_mut(row.index()) {
            let score = is_taken.then(|| self.score.score(cluster, row));
            let old = std::mem::replace(known, score);
            self.now.remove(old);
            self.now.add(score);
        }
        self.scaled(row)
    }

    /// Nothing is known of any row any more.
    pub(super) fn clear(&mut self) {
        (self.scaled, self.highest, self.now) = (Vec::new(), None, Highest::default());
        self.inherited.clear();
    }

    /// Takes scores that are scaled into those of all rows, or from them where all nodes are alike.
    pub(super) fn scale(&mut self, cluster: &Cluster, best: &mut Best) {
        if self.scale.is_none() {
            return;
        }
        let is_uniform = self.score.uniform(cluster).is_some();
        if is_uniform {
            self.withdraw(best);
        } else if self.scaled.is_empty() {
            let rows: Vec<Row> = best.rows().collect();
            let scores = self.of_rows(cluster, &rows);
            self.scaled = vec![None; cluster.width()];
            rows.iter().zip(scores).for_each(|(row, score)| self.scaled[row.index()] = Some(score));
            self.now = self.highest_but(|_| false);
            self.highest = self.now.score;
            self.add_by_scaled(best, |score| self.scale_by(score, self.highest));
        }
        if self.now.is_gone() {
            self.now = self.highest_but(|_| false);
        }
        self.scale_to(best, self.now.score);
    }

    /// Takes what is scaled from the scores of all rows.
    pub(super) fn withdraw(&mut self, best: &mut Best) {
        if !self.scaled.is_empty() {
            self.add_by_scaled(best, |score| -self.scale_by(score, self.highest));
            self.scaled.clear();
            (self.highest, self.now) = (None, Highest::default());
        }
    }

    /// Whether it is known how these rows compare, if only few rows do.
    pub(super) fn has_rated(&self, rows: &[Row]) -> bool {
        self.is_part_of_rows()
            || self.score.inherits()
                && rows.iter().all(|row| self.inherited.get(row.index()).copied().flatten().is_some())
    }

    /// Scales the scores of all rows by the highest one, where some do not count.
    pub(super) fn scale_beside(&mut self, best: &mut Best, is_excluded: impl Fn(Row) -> bool) {
        self.scale_to(best, self.highest_but(is_excluded).score);
    }

    fn scale_to(&mut self, best: &mut Best, highest: Option<i64>) {
        if highest != self.highest {
            self.add_by_scaled(best, |score| self.scale_by(score, highest) - self.scale_by(score, self.highest));
            self.highest = highest;
        }
    }

    fn highest_but(&self, is_excluded: impl Fn(Row) -> bool) -> Highest {
        let mut highest = Highest::default();
        for (index, score) in self.scaled.iter().enumerate() {
            if !Row::at(index).is_some_and(&is_excluded) {
                highest.add(*score);
            }
        }
        highest
    }

    /// Adds what differs in the scores of these rows, where no others count.
    pub(super) fn add_scores(&self, rows: &[Row], totals: &mut [i64]) {
        let score = |row: &Row| self.scaled.get(row.index()).copied().flatten();
        let highest = rows.iter().filter_map(score).max();
        if highest != self.highest {
            let rows = totals.iter_mut().zip(rows);
            rows.for_each(|(total, row)| *total += self.scaled_beside(*row, highest) - self.scaled(*row));
        }
    }

    /// The scores of these rows, normalised over them.
    pub(super) fn rate(&mut self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        if let Some(uniform) = self.score.uniform(cluster) {
            return vec![uniform; rows.len()];
        }
        self.score.compare(cluster, rows);
        let mut scores: Vec<i64> = if self.score.inherits() {
            let Self { score, inherited, .. } = self;
            let width = rows.iter().map(|row| row.index() + 1).max().unwrap_or(0).max(inherited.len());
            inherited.resize(width, None);
            let rate = |row: &Row| *inherited[row.index()].get_or_insert_with(|| score.score(cluster, *row));
            rows.iter().map(rate).collect()
        } else {
            self.of_rows(cluster, rows)
        };
        self.score.normalize(&mut scores);
        scores
    }
}
