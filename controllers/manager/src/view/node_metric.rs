//! The spec of a NodeMetric; the status, which koordlet writes, is skipped. The manager alone writes it; equal specs are kept once, whatever the number of nodes.

use std::sync::Arc;

use koord_api::node_metric::NodeMetric;
use koord_resource::Projection;
use koord_runtime::outcome::Owned;
use serde_json::{Value, json};

/// The spec of a NodeMetric as text.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = NodeMetric)]
pub struct NodeMetricView {
    spec: Arc<str>,
}

impl NodeMetricView {
    /// The spec as a value; empty when the object has none.
    pub fn spec(&self) -> Value {
        serde_json::from_str(&self.spec).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
    }
}

impl Owned for NodeMetricView {
    fn owned(&self) -> Value {
        json!({ "spec": self.spec() })
    }
}
