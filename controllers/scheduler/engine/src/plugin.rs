//! What decides: plugins, as the scheduling framework of Kubernetes has them, over columns.
//!
//! A plugin looks at a pod once and prepares what it then asks of every node ([`Filter`], [`Score`]). Most of what is
//! prepared depends on the pod's template and the node alone, and says so (`is_local`): then the answers for one pod hold
//! for the next pod of its class, on every node that has not changed.

use crate::{
    cluster::{Class, Cluster},
    columns::Row,
    event::{Event, Events},
    pod::Pod,
};

/// The highest score of a node.
pub const SCORE_MAX: i64 = 100;

/// A plugin of the scheduling framework. Every extension point is optional.
pub trait Plugin: Send + Sync {
    /// Its name, as configurations and metrics have it.
    fn name(&self) -> &'static str;

    /// PreEnqueue: whether the pod may be scheduled at all now; the reason otherwise.
    fn pre_enqueue(&self, _pod: &Pod) -> Result<(), String> {
        Ok(())
    }

    /// PreFilter: what is asked of every node. Without a word about this pod there is nothing to ask.
    fn filter(&self, _class: &Class, _cluster: &Cluster) -> PreFilter {
        PreFilter::Skip
    }

    /// PreScore: how nodes are compared; none where all of them are alike to this plugin.
    fn score(&self, _class: &Class, _cluster: &Cluster) -> Option<Box<dyn Score>> {
        None
    }

    /// The reasons of a refusal, as events and conditions show them.
    fn reasons(&self, _refusal: &Refusal, _cluster: &Cluster) -> Vec<String> {
        Vec::new()
    }

    /// The events after which a pod that this plugin refused may fit.
    fn events(&self) -> Events {
        Events::ALL
    }

    /// Whether a pod that this plugin refused may fit after such an event.
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        true
    }
}

/// The result of PreFilter.
pub enum PreFilter {
    /// Every node will do.
    Skip,
    /// Each node is asked.
    Nodes(Box<dyn Filter>),
    /// No node will do.
    None(Refusal),
}

/// What a plugin asks of a node for one pod, or for all pods of a class.
pub trait Filter: Send + Sync {
    /// Whether the pod may run there.
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal>;

    /// Whether the answer depends on the class and the node alone, not on other nodes and not on when it is asked.
    fn is_local(&self) -> bool {
        true
    }
}

/// How a plugin compares nodes for one pod, or for all pods of a class.
pub trait Score: Send + Sync {
    /// The score of a node that passed all filters: from 0 to [`SCORE_MAX`], unless [`Score::normalize`] brings it there.
    fn score(&self, cluster: &Cluster, row: Row) -> i64;

    /// Brings the scores of all nodes that passed between 0 and [`SCORE_MAX`].
    fn normalize(&self, _scores: &mut [i64]) {}

    /// Whether the score depends on the class and the node alone: nothing is normalised, and no other node counts.
    fn is_local(&self) -> bool;

    /// The score of every node, normalised, where all are alike in this cluster now.
    fn uniform(&self, _cluster: &Cluster) -> Option<i64> {
        None
    }
}

/// Why a plugin refuses a node, in as few bytes as the answer for thousands of nodes allows. The plugin makes words of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Which of the plugin's reasons.
    pub reason: u16,
    /// Whether the removal of pods from the node may help (`Unschedulable`, not `UnschedulableAndUnresolvable`).
    pub resolvable: bool,
    /// What belongs to the reason: a number, or a set of bits.
    pub operand: u64,
}

impl Refusal {
    /// A reason that the removal of pods may resolve.
    pub const fn resolvable(reason: u16, operand: u64) -> Self {
        Self { reason, resolvable: true, operand }
    }

    /// A reason that lies in the node.
    pub const fn unresolvable(reason: u16) -> Self {
        Self { reason, resolvable: false, operand: 0 }
    }
}

/// Scales scores so that the highest becomes [`SCORE_MAX`]; with `reverse` the lowest scores become the highest. Scores that
/// are all 0 stay, and become [`SCORE_MAX`] when reversed.
pub fn default_normalize(scores: &mut [i64], reverse: bool) {
    let highest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        let scaled = if highest == 0 { 0 } else { SCORE_MAX * *score / highest };
        *score = if reverse { SCORE_MAX - scaled } else { scaled };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_scores_keep_their_order_or_turn_it_round() {
        let normalized = |mut scores: Vec<i64>, reverse| {
            default_normalize(&mut scores, reverse);
            scores
        };
        assert_eq!(normalized(vec![0, 1, 3], false), [0, 33, 100]);
        assert_eq!(normalized(vec![0, 1, 3], true), [100, 67, 0]);
        assert_eq!((normalized(vec![0, 0], false), normalized(vec![0, 0], true)), (vec![0, 0], vec![100, 100]));
    }
}
