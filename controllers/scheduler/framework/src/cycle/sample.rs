//! Samples of nodes: a search ends with enough nodes that take the pod, and the next one begins where it has ended
//! (`spec/scheduler.md` 4.3, steps 6 and 7). Without a configured share every node is filtered.

use super::{CandidateCache, Prepared, Profile};
use crate::{cluster::Cluster, columns::Row};

/// Below so many nodes all of them are filtered.
const NODES_MIN: usize = 100;

/// Which nodes are filtered, and how many were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// How many nodes that take the pod end the search.
    enough: usize,
    /// How many nodes are passed over first; they are filtered last.
    from: usize,
    /// How many nodes were filtered.
    pub(super) evaluated: usize,
}

impl Sample {
    pub(super) fn is_of_all(&self) -> bool {
        self.enough == usize::MAX
    }

    pub(super) fn is_enough(&self, feasible: usize) -> bool {
        feasible >= self.enough
    }

    /// The nodes in the order in which they are filtered.
    pub(super) fn rows(self, cluster: &Cluster) -> impl Iterator<Item = Row> {
        let rows = || cluster.rows().map(|(row, _)| row);
        rows().skip(self.from).chain(rows().take(self.from))
    }
}

impl Profile {
    /// How many nodes that take a pod end the search, of so many that may be filtered; none where all of them are.
    fn enough_of(&self, nodes: usize) -> Option<usize> {
        let percent = self.sampled_percent?;
        if self.scores.is_empty() {
            return Some(1);
        }
        let enough = (nodes * usize::from(percent) / 100).max(NODES_MIN);
        (enough < nodes).then_some(enough)
    }

    /// The nodes of the next search.
    pub(super) fn sample(&self, prepared: &Prepared, cache: &CandidateCache, cluster: &Cluster) -> Sample {
        let enough = self.sampled_percent.and_then(|_| self.enough_of(prepared.nodes(cluster)));
        let from = enough.map_or(0, |_| cache.passed_over() % cluster.len().max(1));
        Sample { enough: enough.unwrap_or(usize::MAX), from, evaluated: 0 }
    }
}

impl CandidateCache {
    /// The next search begins where this one has ended.
    pub(super) fn go_on_after(&mut self, sample: Sample, cluster: &Cluster) {
        if !sample.is_of_all() {
            self.pass_over((sample.from + sample.evaluated) % cluster.len().max(1));
        }
    }
}

impl Prepared {
    /// How many nodes are left before filters run.
    fn nodes(&self, cluster: &Cluster) -> usize {
        if self.subset.is_everywhere() {
            return cluster.len();
        }
        cluster.rows().filter(|(row, _)| self.subset.leaves_out(cluster, *row).is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_nodes_are_enough_follows_from_their_number_and_the_share() {
        let enough = |sampled_percent, nodes| {
            let profile = Profile { sampled_percent, scores: vec![(0, 1)], ..Profile::default() };
            profile.enough_of(nodes)
        };
        let cases = [
            (None, 5_000, None),
            (Some(10), 99, None),
            (Some(10), 100, None),
            (Some(10), 101, Some(100)),
            (Some(40), 1_000, Some(400)),
            (Some(5), 1_000, Some(100)),
            (Some(60), 150, Some(100)),
            (Some(70), 149, Some(104)),
            (Some(40), 6_000, Some(2_400)),
            (Some(100), 6_000, None),
        ];
        for (percent, nodes, expected) in cases {
            assert_eq!(enough(percent, nodes), expected, "{percent:?} of {nodes}");
        }
        let nothing_compares = Profile { sampled_percent: Some(50), ..Profile::default() };
        assert_eq!(nothing_compares.enough_of(9), Some(1), "the first that takes the pod is as good as any");
    }
}
