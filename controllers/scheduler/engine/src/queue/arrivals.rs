//! How many pods have come into which part of the queue, and why: for metrics.

use crate::event::{Event, Events};

/// A part of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Pods to be tried next.
    Active,
    /// Pods that were tried lately.
    Backoff,
    /// Pods that were refused, or that a plugin holds back.
    Parked,
}

/// Why a pod comes into a part of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The pod is new.
    PodAdded,
    /// The pod was changed.
    PodChanged,
    /// It was tried and not bound.
    AttemptFailed,
    /// Its pause is over.
    PauseOver,
    /// It is tried before its pause is over, because no other is to be tried.
    TriedEarly,
    /// A plugin wants it to be tried.
    Activated,
    /// It was parked for long.
    TimeOver,
    /// A node was added.
    NodeAdded,
    /// A node was deleted.
    NodeRemoved,
    /// A node's allocatable resources changed.
    NodeAllocatable,
    /// A node's labels or annotations changed.
    NodeLabels,
    /// A node's taints changed, or it was cordoned or uncordoned.
    NodeTaints,
    /// A pod was bound.
    PodAssigned,
    /// A pod is gone from its node.
    PodRemoved,
    /// A pod on a node requests less than before.
    PodScaledDown,
    /// A pod on a node has other labels than before.
    PodRelabelled,
    /// An object of another kind was added, changed or deleted.
    ObjectChanged,
}

/// Why a pod is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    New,
    Activated,
    Woken(Cause),
    Returned,
}

impl Admission {
    /// The cause that is counted.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::New => Cause::PodAdded,
            Self::Activated => Cause::Activated,
            Self::Woken(cause) => cause,
            Self::Returned => Cause::AttemptFailed,
        }
    }
}

/// How many pods have come, by cause and part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals([[u64; Part::ALL.len()]; Cause::ALL.len()]);

impl Part {
    /// All parts.
    pub const ALL: [Self; 3] = [Self::Active, Self::Backoff, Self::Parked];
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 17] = [
        Self::PodAdded,
        Self::PodChanged,
        Self::AttemptFailed,
        Self::PauseOver,
        Self::TriedEarly,
        Self::Activated,
        Self::TimeOver,
        Self::NodeAdded,
        Self::NodeRemoved,
        Self::NodeAllocatable,
        Self::NodeLabels,
        Self::NodeTaints,
        Self::PodAssigned,
        Self::PodRemoved,
        Self::PodScaledDown,
        Self::PodRelabelled,
        Self::ObjectChanged,
    ];

    /// The cause that an event is; of several changes of a node the one that kube-scheduler asks about first.
    pub(super) fn of(event: &Event) -> Self {
        match event {
            Event::NodeAdded(_) => Self::NodeAdded,
            Event::NodeRemoved(_) => Self::NodeRemoved,
            Event::NodeChanged { .. } => match event.kinds() {
                kinds if kinds.meets(Events::NODE_TAINTS) => Self::NodeTaints,
                kinds if kinds.meets(Events::NODE_ALLOCATABLE) => Self::NodeAllocatable,
                _ => Self::NodeLabels,
            },
            Event::PodAssigned(_) => Self::PodAssigned,
            Event::PodRemoved(_) | Event::NominationChanged(_) => Self::PodRemoved,
            Event::PodScaledDown { .. } => Self::PodScaledDown,
            Event::PodRelabelled { .. } => Self::PodRelabelled,
            Event::Object(_) => Self::ObjectChanged,
            Event::PodChanged => Self::PodChanged,
            Event::Timeout => Self::TimeOver,
        }
    }
}

impl Arrivals {
    /// How many have come into this part for this cause.
    pub fn of(&self, cause: Cause, part: Part) -> u64 {
        self.0[cause as usize][part as usize]
    }

    pub(super) fn count(&mut self, cause: Cause, part: Part) {
        self.0[cause as usize][part as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::Node;

    #[test]
    fn a_change_of_a_node_is_counted_by_what_has_changed() {
        let cause = |new: Node| Cause::of(&Event::NodeChanged { old: Arc::new(Node::default()), new: Arc::new(new) });
        let labels = [("a", "b")].into_iter().collect();
        let relabelled = Node { labels, ..Node::default() };
        assert_eq!(cause(relabelled.clone()), Cause::NodeLabels);
        let allocatable = ["9".parse().unwrap()].into_iter().map(|cpu| ("cpu", cpu)).collect();
        let larger = Node { allocatable, ..relabelled };
        assert_eq!(cause(larger.clone()), Cause::NodeAllocatable);
        assert_eq!(cause(Node { unschedulable: true, ..larger }), Cause::NodeTaints);
    }

    #[test]
    fn each_cause_and_part_is_counted_by_itself() {
        let mut arrivals = Arrivals::default();
        for (index, cause) in (1..).zip(Cause::ALL) {
            for (times, part) in (0..).zip(Part::ALL) {
                (0..index * times).for_each(|_: u64| arrivals.count(cause, part));
            }
        }
        for (index, cause) in (1..).zip(Cause::ALL) {
            assert_eq!(Part::ALL.map(|part| arrivals.of(cause, part)), [0, index, 2 * index], "{cause:?}");
        }
    }
}
