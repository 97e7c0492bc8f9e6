//! How lists of reservations are merged by a strategic merge patch.

use koord_profile::PodNode;
use koord_schema::typed::{ListKey, Shape, TypeNode};

/// A place in a reservation: its own lists are replaced, those of the template are a pod's.
#[derive(Clone, Copy)]
pub(super) enum ReservationNode {
    Own,
    Spec,
    Pod(PodNode),
}

impl TypeNode for ReservationNode {
    fn shape(&self) -> Shape {
        match self {
            Self::Own | Self::Spec => Shape::Untyped,
            Self::Pod(node) => node.shape(),
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Own, "spec") => Some(Self::Spec),
            (Self::Spec, "template") | (Self::Own, "metadata") => Some(Self::Pod(PodNode::ROOT)),
            (Self::Own | Self::Spec, _) => Some(Self::Own),
            (Self::Pod(node), name) => node.field(name).map(Self::Pod),
        }
    }

    fn declares(&self, _: &str) -> bool {
        false
    }

    fn item(&self) -> Option<Self> {
        match self {
            Self::Own | Self::Spec => Some(Self::Own),
            Self::Pod(node) => node.item().map(Self::Pod),
        }
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        if let Self::Pod(node) = self { node.list_keys() } else { Vec::new() }
    }

    fn patch_merge_key(&self) -> Option<&str> {
        if let Self::Pod(node) = self { node.patch_merge_key() } else { None }
    }

    fn patch_strategy(&self) -> Option<&str> {
        if let Self::Pod(node) = self { node.patch_strategy() } else { None }
    }
}
