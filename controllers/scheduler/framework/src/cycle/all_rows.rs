//! Local filters and scores of all nodes at once: one plugin after the other, each for all rows that are left.

use super::{Prepared, Verdict, verdicts::Verdicts};
use crate::{best::Best, cluster::Cluster, columns::Row};

impl Prepared {
    /// The sums of the local scores of all rows, and why a local filter refuses the others.
    pub(super) fn evaluate_all(&self, cluster: &Cluster) -> (Best, Verdicts) {
        let mut verdicts = Verdicts::none(cluster.width());
        let mut rows: Vec<Row> = cluster.rows().map(|(row, _)| row).collect();
        rows.retain(|row| {
            let outside = self.subset.leaves_out(cluster, *row);
            verdicts.set(*row, outside);
            outside.is_none()
        });
        for local in self.filters.iter().filter(|filter| filter.is_local) {
            local.filter.filter_rows(cluster, &mut rows, &mut |row, refusal| {
                verdicts.set(row, Some(Verdict { plugin: local.plugin, refusal }));
            });
        }
        let mut scores = vec![0; rows.len()];
        for local in self.scores.iter().filter(|scorer| scorer.is_local) {
            let of_rows = local.of_rows(cluster, &rows);
            scores.iter_mut().zip(of_rows).for_each(|(sum, score)| *sum += local.weight * score);
        }
        let best = Best::new(cluster.width(), &rows, &scores);
        debug_assert!(self.agrees_with_single_rows(cluster, &verdicts), "{APART}");
        (best, verdicts)
    }

    fn agrees_with_single_rows(&self, cluster: &Cluster, verdicts: &Verdicts) -> bool {
        cluster.rows().all(|(row, _)| verdicts.get(row) == self.local_verdict(cluster, row))
    }
}

/// What is wrong where rows that are evaluated at once get other results than each alone.
pub(super) const APART: &str = "a plugin says something else of many rows than of each";
