//! What happens to the cluster, as far as a pod that waits may fit because of it.

use std::{ops::BitOr, sync::Arc};

use crate::{node::Node, object::ObjectChange, pod::Pod};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node was added.
    NodeAdded(Arc<Node>),
    /// A node was changed.
    NodeChanged {
        /// As it was.
        old: Arc<Node>,
        /// As it is.
        new: Arc<Node>,
    },
    /// A node was deleted.
    NodeRemoved(Arc<Node>),
    /// A pod was bound to a node.
    PodAssigned(Arc<Pod>),
    /// A pod is gone from its node, or is not assumed to be there any more.
    PodRemoved(Arc<Pod>),
    /// A pod on a node requests less of something than before.
    PodScaledDown {
        /// As it was.
        old: Arc<Pod>,
        /// As it is.
        new: Arc<Pod>,
    },
    /// A pod on a node has other labels than before.
    PodRelabelled {
        /// As it was.
        old: Arc<Pod>,
        /// As it is.
        new: Arc<Pod>,
    },
    /// An object of another kind was added, changed or deleted.
    Object(ObjectChange),
    /// Room is not being made any more for a pod of this priority, or elsewhere.
    NominationChanged(i32),
    /// The pod that waits was changed itself.
    PodChanged,
    /// It has waited for long.
    Timeout,
}

/// A set of kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events(u16);

impl Events {
    /// Nothing helps.
    pub const NONE: Self = Self(0);
    /// A node was added.
    pub const NODE_ADDED: Self = Self(1);
    /// A node's allocatable resources changed.
    pub const NODE_ALLOCATABLE: Self = Self(1 << 1);
    /// A node's labels or annotations changed.
    pub const NODE_LABELS: Self = Self(1 << 2);
    /// A node's taints changed, or it was cordoned or uncordoned.
    pub const NODE_TAINTS: Self = Self(1 << 3);
    /// A pod was bound.
    pub const POD_ASSIGNED: Self = Self(1 << 4);
    /// A pod is gone from its node.
    pub const POD_REMOVED: Self = Self(1 << 5);
    /// The pod itself was changed.
    pub const POD_CHANGED: Self = Self(1 << 6);
    /// An object of another kind changed; [`is_helped_by`](crate::EnqueueExtensions::is_helped_by) says whether it is one that matters.
    pub const OBJECTS: Self = Self(1 << 7);
    /// A pod on a node requests less than before.
    pub const POD_SCALED_DOWN: Self = Self(1 << 8);
    /// The labels of a pod on a node changed.
    pub const POD_LABELS: Self = Self(1 << 9);
    /// A node was deleted.
    pub const NODE_REMOVED: Self = Self(1 << 10);
    /// Whatever happens.
    pub const ALL: Self = Self(u16::MAX);

    /// Whether both have one in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Events {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Event {
    /// Which kinds of events it is.
    pub fn kinds(&self) -> Events {
        match self {
            Self::NodeAdded(_) => Events::NODE_ADDED,
            Self::NodeChanged { old, new } => {
                let when = |changed: bool, kind: Events| if changed { kind } else { Events::NONE };
                when(old.allocatable != new.allocatable, Events::NODE_ALLOCATABLE)
                    | when(old.labels != new.labels || old.annotations != new.annotations, Events::NODE_LABELS)
                    | when(old.taints != new.taints || old.unschedulable != new.unschedulable, Events::NODE_TAINTS)
            }
            Self::NodeRemoved(_) => Events::NODE_REMOVED,
            Self::PodAssigned(_) => Events::POD_ASSIGNED,
            Self::PodRemoved(_) | Self::NominationChanged(_) => Events::POD_REMOVED,
            Self::PodScaledDown { .. } => Events::POD_SCALED_DOWN,
            Self::PodRelabelled { .. } => Events::POD_LABELS,
            Self::PodChanged => Events::POD_CHANGED,
            Self::Object(_) => Events::OBJECTS,
            Self::Timeout => Events::ALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_node_is_about_what_differs() {
        let old = Arc::new(Node::default());
        let new = Arc::new(Node { unschedulable: true, ..Node::default() });
        let kinds = Event::NodeChanged { old: Arc::clone(&old), new }.kinds();
        assert_eq!(kinds, Events::NODE_TAINTS);
        assert!(kinds.meets(Events::NODE_TAINTS | Events::POD_REMOVED) && !kinds.meets(Events::NODE_LABELS));
        assert_eq!(Event::NodeChanged { old: Arc::clone(&old), new: old }.kinds(), Events::NONE);
    }
}
