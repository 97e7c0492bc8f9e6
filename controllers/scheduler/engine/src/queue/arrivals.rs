//! How many pods have come into which part of the queue, and why: for metrics.

use std::{any::TypeId, collections::BTreeMap};

use koord_scheduler_framework::event::{Event, Events};

/// A part of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Pods to be tried next.
    Active,
    /// Pods that were tried lately.
    Backoff,
    /// Pods that were refused, or that a plugin holds back.
    Parked,
}

/// Why a pod comes into a part of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// An object of another kind, whose type is this, was added, changed or deleted.
    Object(TypeId, Change),
}

/// What has become of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was added.
    Added,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals(BTreeMap<(Cause, Part), u64>);

impl Part {
    pub const ALL: [Self; 3] = [Self::Active, Self::Backoff, Self::Parked];
}

impl Cause {
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
            Event::Object(change) => {
                let happened = match (&change.old, &change.new) {
                    (_, None) => Change::Deleted,
                    (None, _) => Change::Added,
                    _ => Change::Changed,
                };
                Self::Object(change.type_(), happened)
            }
            Event::PodChanged => Self::PodChanged,
            Event::Timeout => Self::TimeOver,
        }
    }
}

impl Arrivals {
    /// How many have come into this part for this cause.
    pub fn of(&self, cause: Cause, part: Part) -> u64 {
        self.0.get(&(cause, part)).copied().unwrap_or(0)
    }

    /// All that have come.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, Part, u64)> {
        self.0.iter().map(|((cause, part), pods)| (*cause, *part, *pods))
    }

    pub(super) fn count(&mut self, cause: Cause, part: Part) {
        *self.0.entry((cause, part)).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_scheduler_framework::{
        node::Node,
        object::{Object, ObjectChange},
    };

    use super::*;

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
        let object = |change| Cause::Object(TypeId::of::<u32>(), change);
        let causes = [
            Cause::PodAdded,
            Cause::NodeTaints,
            object(Change::Added),
            object(Change::Deleted),
            Cause::Object(TypeId::of::<u64>(), Change::Added),
        ];
        for (index, cause) in (1..).zip(causes) {
            for (times, part) in (0..).zip(Part::ALL) {
                (0..index * times).for_each(|_: u64| arrivals.count(cause, part));
            }
        }
        for (index, cause) in (1..).zip(causes) {
            assert_eq!(Part::ALL.map(|part| arrivals.of(cause, part)), [0, index, 2 * index], "{cause:?}");
        }
        assert_eq!(arrivals.iter().map(|(.., pods)| pods).sum::<u64>(), 3 * (1 + 2 + 3 + 4 + 5));
    }

    #[test]
    fn an_object_is_counted_by_its_type_and_what_has_become_of_it() {
        let object = |value: u32| Object::new(ObjectKey::cluster("a"), Uid::from("1"), false, Arc::new(value));
        let cause = |old: Option<u32>, new: Option<u32>| {
            Cause::of(&Event::Object(ObjectChange { old: old.map(object), new: new.map(object) }))
        };
        let of = |change| Cause::Object(TypeId::of::<u32>(), change);
        assert_eq!(
            [cause(None, Some(1)), cause(Some(1), Some(2)), cause(Some(2), None)],
            [Change::Added, Change::Changed, Change::Deleted].map(of)
        );
    }
}
