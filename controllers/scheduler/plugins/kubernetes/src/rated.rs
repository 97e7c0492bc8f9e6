//! Scores of nodes by what is requested on them.

use koord_scheduler_allocation::{CountedTwice, is_counted_once};
use koord_scheduler_framework::{NodeScore, cluster::Cluster, columns::Row};
use koord_scheduling::ResourceId;

/// What says how good a node is by what is requested on it.
pub(crate) trait Rate: Send + Sync {
    /// The score of a node, of whose resources so much is counted twice.
    fn rate(&self, cluster: &Cluster, row: Row, twice: impl Fn(ResourceId) -> i64) -> i64;
}

/// The score that follows from it.
pub(crate) struct Rated<R>(pub(crate) R);

impl<R: Rate> NodeScore for Rated<R> {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let twice = CountedTwice::on(cluster, row);
        self.0.rate(cluster, row, |resource| twice.of(resource))
    }

    fn score_rows(&self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        if is_counted_once(cluster) {
            return rows.iter().map(|row| self.0.rate(cluster, *row, |_| 0)).collect();
        }
        rows.iter().map(|row| self.score(cluster, *row)).collect()
    }

    fn is_local(&self) -> bool {
        true
    }
}
