//! Score: which of the nodes that take a pod is best.

use super::{Request, SCORE_MAX};
use crate::{cluster::Cluster, columns::Row, node::Node};

/// Scores nodes. It looks at the pod once, and prepares how nodes are compared.
///
/// What is prepared for one pod is used for all pods of its class, unless [`SchedulingSignature`](super::SchedulingSignature) says that the pod itself
/// matters.
pub trait Score: Send + Sync + 'static {
    /// How nodes are compared for this pod. `None` where all of them are alike to the plugin.
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>>;
}

/// How a plugin compares nodes for one pod, or for all pods of a class.
pub trait NodeScore: Send + Sync {
    /// Whether this holds for as long as [`NodeScore::refresh`] is called for every row that has changed. It is prepared again for
    /// every pod otherwise.
    fn follows_rows(&self) -> bool {
        self.is_local() || self.scale().is_some()
    }

    /// A row has changed after this was prepared: its node, or the pods on it. Only what is summed over rows is affected.
    fn refresh(&mut self, _cluster: &Cluster, _row: Row) {}

    /// These are the nodes that passed all filters. Only a score that is not local is given them.
    fn compare(&mut self, _cluster: &Cluster, _rows: &[Row]) {}

    /// The score of a node that passed all filters: from 0 to [`SCORE_MAX`], unless [`NodeScore::normalize`] brings it there.
    fn score(&self, cluster: &Cluster, row: Row) -> i64;

    /// The same of many nodes.
    fn score_rows(&self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        rows.iter().map(|row| self.score(cluster, *row)).collect()
    }

    /// Brings the scores of all nodes that passed between 0 and [`SCORE_MAX`].
    fn normalize(&self, scores: &mut [i64]) {
        if let Some(scale) = self.scale() {
            normalize(scores, scale);
        }
    }

    /// How scores are scaled, where each depends on the class and its node alone and all that other nodes change is the highest: such as
    /// [`highest_is_best`] or [`lowest_is_best`]. Scores are kept by row then.
    fn scale(&self) -> Option<Scale> {
        None
    }

    /// Whether the scores of [`NodeScore::rows`] that this gave for the last pod of the class hold for this pod on rows that have not changed,
    /// as with [`NodeFilter::inherits`](super::NodeFilter::inherits).
    fn inherits(&self) -> bool {
        false
    }

    /// Whether the score depends on the class and the node alone: nothing is normalised, and no other node counts.
    fn is_local(&self) -> bool;

    /// The only rows whose score is not 0, and over which alone scores are normalised; none where all rows are compared.
    fn rows(&self, _cluster: &Cluster) -> Option<Vec<Row>> {
        None
    }

    /// The score of every node, normalised, where all are alike in this cluster now.
    fn uniform(&self, _cluster: &Cluster) -> Option<i64> {
        None
    }
}

/// Compares nodes by what is reported of them alone, from 0 to [`SCORE_MAX`]. As with [`PreparedFilter::of_node`](super::PreparedFilter::of_node), a score holds for all
/// pods of the class until the node changes, and may depend on both alone.
pub fn score_of_node(score: impl Fn(&Node) -> i64 + Send + Sync + 'static) -> Box<dyn NodeScore> {
    Box::new(OfNode(score))
}

/// A function of a node. The score of a row without a node is 0.
struct OfNode<F>(F);

impl<F: Fn(&Node) -> i64 + Send + Sync> NodeScore for OfNode<F> {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        cluster.node(row).map_or(0, |node| (self.0)(node))
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// What a score becomes beside the highest score of all nodes that passed.
pub type Scale = fn(score: i64, highest: i64) -> i64;

/// How much of a whole a part is, from 0 to [`SCORE_MAX`]. Both may be anything that objects say: a part below 0 is none, one above the
/// whole is all of it, and of nothing there is no share. Bytes are exact up to 92 PB.
pub fn share(part: i64, whole: i64) -> i64 {
    if whole <= 0 { 0 } else { part.clamp(0, whole).saturating_mul(SCORE_MAX) / whole }
}

/// Scales scores so that the highest becomes [`SCORE_MAX`]. Scores that are all 0 stay.
pub fn highest_is_best(score: i64, highest: i64) -> i64 {
    SCORE_MAX.saturating_mul(score).checked_div(highest).unwrap_or(0)
}

/// Scales scores so that 0 becomes [`SCORE_MAX`], and the highest 0.
pub fn lowest_is_best(score: i64, highest: i64) -> i64 {
    SCORE_MAX.saturating_sub(highest_is_best(score, highest))
}

/// Leaves scores as they are.
pub fn as_it_is(score: i64, _: i64) -> i64 {
    score
}

/// Scales scores by the highest of them.
pub fn normalize(scores: &mut [i64], scale: Scale) {
    let highest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        *score = scale(*score, highest);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_score_is_called_for_its_node() {
        let mut cluster = Cluster::default();
        for (name, unschedulable) in [("open", false), ("cordoned", true)] {
            cluster.set_node(Arc::new(Node { name: name.into(), unschedulable, ..Node::default() }));
        }
        let [open, cordoned] = ["open", "cordoned"].map(|name| cluster.row(name).unwrap());
        let score = score_of_node(|node| i64::from(node.unschedulable) * SCORE_MAX);
        assert_eq!([open, cordoned].map(|row| score.score(&cluster, row)), [0, SCORE_MAX]);
        assert!(score.is_local());
        cluster.remove_node("cordoned");
        assert_eq!(score.score(&cluster, cordoned), 0);
    }

    #[test]
    fn a_share_is_between_nothing_and_all_whatever_the_numbers_are() {
        assert_eq!([share(1, 3), share(3, 3), share(4, 3), share(-1, 3), share(1, 0)], [33, 100, 100, 0, 0]);
        for part in [i64::MIN, -1, 0, 1, i64::MAX] {
            for whole in [i64::MIN, -1, 0, 1, i64::MAX] {
                assert!((0..=SCORE_MAX).contains(&share(part, whole)), "{part} of {whole}");
            }
        }
    }

    #[test]
    fn normalised_scores_keep_their_order_or_turn_it_round() {
        let normalized = |mut scores: Vec<i64>, scale: Scale| {
            normalize(&mut scores, scale);
            scores
        };
        assert_eq!(normalized(vec![0, 1, 3], highest_is_best), [0, 33, 100]);
        assert_eq!(normalized(vec![0, 1, 3], lowest_is_best), [100, 67, 0]);
        let nothing = [highest_is_best, lowest_is_best, as_it_is].map(|scale| normalized(vec![0, 0], scale));
        assert_eq!(nothing, [[0, 0], [100, 100], [0, 0]]);
        for scale in [highest_is_best, lowest_is_best, as_it_is] {
            for score in [i64::MIN, -1, 0, 1, i64::MAX] {
                for highest in [i64::MIN, -1, 0, 1, i64::MAX] {
                    scale(score, highest);
                }
            }
        }
    }
}
