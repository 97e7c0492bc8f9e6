//! The NUMA nodes of a node, and what kind of CPU it has.

use std::sync::Arc;

use koord_api::{node_annotations::CPU_BASIC_INFO, node_resource_topology::v1alpha1::NodeResourceTopology};
use koord_resource::{Resource as _, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Labels, Projection, WireObject, text},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The NUMA nodes of a node, and what kind of CPU it has.
#[derive(Debug, PartialEq, Eq)]
pub struct TopologyView {
    zones: Arc<str>,
    cpu: Option<Arc<str>>,
}

impl TopologyView {
    /// The zones as they stand in the object, so that what we do not know stays when they are written.
    pub fn zones(&self) -> Vec<Value> {
        serde_json::from_str::<Option<Vec<Value>>>(&self.zones).ok().flatten().unwrap_or_default()
    }

    /// The annotation with the kind of CPU.
    pub fn cpu(&self) -> Option<&str> {
        self.cpu.as_deref()
    }
}

/// What is read of a NodeResourceTopology.
#[derive(Deserialize)]
pub struct Members<'a> {
    #[serde(borrow, default)]
    zones: Option<&'a RawValue>,
}

// By hand: of all annotations one is kept.
impl Projection for TopologyView {
    const KIND: ResourceKind = ResourceKind::of(&NodeResourceTopology::INFO);
    type Wire<'a> = WireObject<'a, Members<'a>>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let wanted = |key: &str| key == CPU_BASIC_INFO.name();
        let annotations = Labels::read_some("metadata.annotations", wire.metadata.annotations, strings, wanted)?;
        let cpu = annotations.get(CPU_BASIC_INFO.name()).map(|text| strings.intern(text));
        Ok(Self { zones: strings.intern(text(wire.members.zones)), cpu })
    }
}
