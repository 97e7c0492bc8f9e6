//! The spec of a NodeSLO. The manager alone writes it; equal specs are kept once, whatever the number of nodes.

use std::sync::Arc;

use koord_resource::Projection;
use koord_runtime::outcome::Owned;
use koord_types::node_slo::NodeSLO;
use serde_json::{Value, json};

/// The spec of a NodeSLO as text.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = NodeSLO)]
pub struct NodeSloView {
    spec: Arc<str>,
}

impl NodeSloView {
    /// The spec as a value; empty when the object has none.
    pub fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
    }
}

impl Owned for NodeSloView {
    fn owned(&self) -> Value {
        json!({ "spec": self.spec() })
    }
}
