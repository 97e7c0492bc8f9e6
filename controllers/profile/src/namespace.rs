//! A namespace, as far as profiles select it.

use koord_core::{
    intern::Interner,
    projection::{DecodeError, Labels, MetadataOnly, Projection},
};
use koord_resource::controller::ResourceKind;

/// The labels of a namespace.
#[derive(Debug, PartialEq)]
pub struct NamespaceLabels(pub Labels);

impl Projection for NamespaceLabels {
    const KIND: ResourceKind = ResourceKind::NAMESPACE;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(Labels::read("metadata.labels", wire.metadata.labels, strings)?))
    }
}
