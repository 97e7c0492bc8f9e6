//! What per-node strategies depend on.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{Labels, Metadata, Projection, Unreadable, WireMetadata},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What per-node strategies depend on.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeView {
    /// All labels: selectors of strategies may ask for any.
    pub labels: Labels,
    /// The annotations by which a node overrides its strategies.
    pub annotations: Labels,
    /// `status.allocatable` as text: only whether it changes matters here.
    pub allocatable: Arc<str>,
}

impl NodeView {
    /// Whether a change matters to those who keep one object per node. QUIRK: a changed annotation alone does not, as
    /// recorded (`nodemetric/annotate`, `nodeslo/node-annotate`); it takes effect with the next change that does.
    pub fn stirs(&self, old: &Self) -> bool {
        self.labels != old.labels || self.allocatable != old.allocatable
    }
}

/// What is read of a Node.
#[derive(Deserialize)]
pub struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Deserialize)]
struct Status<'a> {
    #[serde(borrow, default)]
    allocatable: Option<&'a RawValue>,
}

impl<'a> Metadata<'a> for Wire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = Wire<'a>;
    type Index = ();

    fn project(wire: Wire<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        let overrides = |key: &str| key.starts_with("node.koordinator.sh/");
        let allocatable = wire.status.and_then(|status| status.allocatable).map_or("", RawValue::get);
        Ok(Self {
            labels: Labels::read("metadata.labels", wire.metadata.labels, strings)?,
            annotations: Labels::read_some("metadata.annotations", wire.metadata.annotations, strings, overrides)?,
            allocatable: strings.intern(allocatable),
        })
    }
}
