//! The configuration of the node controllers.

pub mod validate;
mod warnings;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, MetadataOnly, Projection},
    store::Store,
};

use crate::settings::ObjectName;

/// What decisions about the configuration see: the nodes, and what the program's flags say.
#[derive(Clone, Copy)]
pub struct ConfigView<'c> {
    pub(crate) nodes: &'c Store<NodeLabels>,
    /// The name of the configuration.
    pub(crate) name: &'c ObjectName,
    /// Whether strategies for some nodes must have a unique name.
    pub(crate) names_needed: bool,
    /// Whether users are warned about what has no effect.
    pub(crate) warns: bool,
}

/// The labels of a node.
#[derive(Debug, PartialEq)]
pub(crate) struct NodeLabels(pub(crate) Labels);

impl Projection for NodeLabels {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(Labels::read("metadata.labels", wire.metadata.labels, strings)?))
    }
}
