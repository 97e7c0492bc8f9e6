//! Values of metrics as the agent computes them.

use std::collections::BTreeMap;

/// A series with its labels, `node` among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name of the family.
    pub name: String,
    pub labels: BTreeMap<&'static str, String>,
    pub value: f64,
}
