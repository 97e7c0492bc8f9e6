//! Which filters and scores are local to nodes, and so are cached, and which run for every pod.

use crate::{
    Verdict,
    cluster::Cluster,
    columns::Row,
    cycle::{Prepared, filtering::first_refusal, scorer::Scorer},
};

impl Prepared {
    /// The plugins that filter or score, those that filter first.
    pub(super) fn plugins(&self) -> impl Iterator<Item = u8> {
        let filters = self.filters.iter().map(|filtering| filtering.plugin);
        filters.chain(self.scores.iter().map(|scorer| scorer.plugin))
    }

    /// Whether the answers for a row depend on what is on that row alone, as far as they are not prepared again.
    pub(super) fn depends_on_single_rows(&self, cluster: &Cluster) -> bool {
        self.filters.iter().all(|filter| filter.is_local)
            && self.scores.iter().all(|scorer| scorer.score.inherits() || !scorer.is_wide(cluster))
    }

    /// Whether all filters and scores are local now.
    pub(super) fn is_local(&self, cluster: &Cluster) -> bool {
        self.filters.iter().all(|filter| filter.is_local) && self.scores.iter().all(|scorer| !scorer.is_wide(cluster))
    }

    /// The only rows whose score is not local, where there are few of them and all filters are local.
    pub(super) fn scored_rows(&self, cluster: &Cluster) -> Option<Vec<Row>> {
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

    pub(in crate::cycle) fn local_verdict(&self, cluster: &Cluster, row: Row) -> Option<Verdict> {
        let local = self.filters.iter().filter(|filter| filter.is_local);
        self.subset.leaves_out(cluster, row).or_else(|| first_refusal(local, cluster, row))
    }

    /// The first refusal of a node, where the first one of local filters is known.
    pub(super) fn wide_verdict(&self, cluster: &Cluster, row: Row, known: Option<Verdict>) -> Option<Verdict> {
        if known.is_some_and(|known| known.is_outside()) {
            return known;
        }
        let before = self.filters.iter().take_while(|filter| known.is_none_or(|known| known.plugin != filter.plugin));
        first_refusal(before.filter(|filter| !filter.is_local), cluster, row).or(known)
    }

    /// The sum of scores that are the same for every node.
    pub(super) fn uniform_score(&self, cluster: &Cluster) -> i64 {
        let wide = self.scores.iter().filter(|scorer| !scorer.is_local);
        wide.filter_map(|Scorer { weight, score, .. }| Some(weight * score.uniform(cluster)?)).sum()
    }

    pub(super) fn add_wide_scores(&mut self, cluster: &Cluster, rows: &[Row], totals: &mut [i64]) {
        for scorer in self.scores.iter_mut().filter(|scorer| scorer.is_wide(cluster)) {
            let scores = scorer.rate(cluster, rows);
            totals.iter_mut().zip(scores).for_each(|(total, score)| *total += scorer.weight * score);
        }
    }
}
