//! A namespace, as far as profiles select it.

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, MetadataOnly, Projection},
};

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
