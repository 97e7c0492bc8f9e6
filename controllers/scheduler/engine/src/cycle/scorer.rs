//! How one plugin compares nodes, and what is kept of its scores.

use crate::{
    best::Best,
    cluster::Cluster,
    columns::Row,
    plugin::{Scale, Score},
};

/// How one plugin compares nodes.
pub(super) struct Scorer {
    pub(super) plugin: u8,
    pub(super) weight: i64,
    pub(super) score: Box<dyn Score>,
    /// How scores are scaled.
    scale: Option<Scale>,
    /// By row, where scores are scaled and differ: none of nodes that are refused.
    scaled: Vec<Option<i64>>,
    /// The highest of them, or of those that count; none where there is none.
    highest: Option<i64>,
    /// Whether another one may be the highest now.
    is_stale: bool,
    /// By row, as far as any is known: the scores that hold for the next pod of the class.
    inherited: Vec<Option<i64>>,
}

impl Scorer {
    pub(super) fn new(plugin: u8, weight: i64, score: Box<dyn Score>) -> Self {
        let scale = score.scale();
        Self { plugin, weight, score, scale, scaled: Vec::new(), highest: None, is_stale: false, inherited: Vec::new() }
    }

    /// The same with what it inherits.
    pub(super) fn after(self, old: Option<Self>) -> Self {
        let inherited = old.filter(|old| old.score.inherits() && self.score.inherits()).map(|old| old.inherited);
        Self { inherited: inherited.unwrap_or_default(), ..self }
    }

    /// Whether what is kept of each row has this in it.
    pub(super) fn is_part_of_rows(&self) -> bool {
        self.score.is_local() || self.scale.is_some()
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

    /// A row has changed, and takes the pods of the class or does not.
    pub(super) fn row_changed(&mut self, cluster: &Cluster, row: Row, is_taken: bool) {
        if self.score.inherits() {
            let score = is_taken.then(|| self.score.score(cluster, row));
            if let Some(known) = self.inherited.get_mut(row.index()) {
                *known = score;
            }
        }
        if let Some(known) = self.scaled.get_mut(row.index()) {
            let score = is_taken.then(|| self.score.score(cluster, row));
            let old = std::mem::replace(known, score);
            self.is_stale |= old != score && (old == self.highest || score > self.highest);
        }
    }

    /// Nothing is known of any row any more.
    pub(super) fn clear(&mut self) {
        (self.scaled, self.highest, self.is_stale) = (Vec::new(), None, false);
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
            let rows = (0..cluster.width()).map(Row::at);
            let score = |row: Row| best.score(row).map(|_| self.score.score(cluster, row));
            self.scaled = rows.map(|row| row.and_then(score)).collect();
            self.highest = self.highest_but(|_| false);
            self.add_by_scaled(best, |score| self.scale_by(score, self.highest));
        }
        if self.is_stale {
            self.scale_beside(best, |_| false);
            self.is_stale = false;
        }
    }

    /// Takes what is scaled from the scores of all rows.
    pub(super) fn withdraw(&mut self, best: &mut Best) {
        if !self.scaled.is_empty() {
            self.add_by_scaled(best, |score| -self.scale_by(score, self.highest));
            self.scaled.clear();
            (self.highest, self.is_stale) = (None, false);
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
        let highest = self.highest_but(is_excluded);
        if highest != self.highest {
            self.add_by_scaled(best, |score| self.scale_by(score, highest) - self.scale_by(score, self.highest));
            self.highest = highest;
        }
    }

    fn highest_but(&self, is_excluded: impl Fn(Row) -> bool) -> Option<i64> {
        let counts =
            |(index, score): (usize, &Option<i64>)| score.filter(|_| !Row::at(index).is_some_and(&is_excluded));
        self.scaled.iter().enumerate().filter_map(counts).max()
    }

    /// Adds what differs in the scores of these rows, where no others count.
    pub(super) fn add_among(&self, rows: &[Row], totals: &mut [i64]) {
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
            rows.iter().map(|row| self.score.score(cluster, *row)).collect()
        };
        self.score.normalize(&mut scores);
        scores
    }
}
