//! The spec of a NodeMetric, which the manager alone writes. Equal specs are kept once, whatever the number of nodes.

use std::sync::Arc;

use koord_api::node_metric::NodeMetric;
use koord_resource::{Resource, controller::ResourceKind};
use koord_runtime::{
    intern::Interner,
    outcome::Owned,
    projection::{Metadata, Projection, Unreadable, WireMetadata},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// The spec of a NodeMetric as text.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeMetricView {
    spec: Arc<str>,
}

impl NodeMetricView {
    /// The spec as a value; empty when the object has none.
    pub fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).unwrap_or_else(|_| json!({}))
    }
}

/// What is read of a NodeMetric: the status, which koordlet writes, is skipped.
#[derive(Deserialize)]
pub struct Wire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

impl<'a> Metadata<'a> for Wire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for NodeMetricView {
    const KIND: ResourceKind = ResourceKind::of(&NodeMetric::INFO);
    type Wire<'a> = Wire<'a>;
    type Index = ();

    fn project(wire: Wire<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self { spec: strings.intern(wire.spec.map_or("{}", RawValue::get)) })
    }
}

impl Owned for NodeMetricView {
    fn owned(&self) -> Value {
        json!({ "spec": self.spec() })
    }
}
