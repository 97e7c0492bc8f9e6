//! How amounts of resources are scored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Weight;

/// How the amounts of a node are scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScoringStrategy {
    /// The rule. Default LeastAllocated.
    #[serde(rename = "type")]
    pub type_: ScoringType,
    /// The resources that count.
    pub resources: Vec<ResourceWeight>,
}

/// A rule by which amounts are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScoringType {
    /// Prefers nodes of which much is free.
    #[default]
    LeastAllocated,
    /// Prefers nodes of which little is free.
    MostAllocated,
    /// Prefers nodes whose resources are used alike. Koordinator's plugins do not have it.
    BalancedAllocation,
    /// Prefers nodes and GPUs where the pod leaves the least of GPUs without a use. DeviceShare alone has it.
    LeastFragmented,
}

/// A resource and its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceWeight {
    /// The resource.
    pub name: String,
    /// Its weight. Default 1.
    pub weight: Weight,
}

impl ScoringStrategy {
    /// LeastAllocated over some resources of equal weight.
    pub(super) fn least(resources: &[&str]) -> Self {
        let weight = |name: &&str| ResourceWeight { name: (*name).to_owned(), weight: Weight(1) };
        Self { type_: ScoringType::LeastAllocated, resources: resources.iter().map(weight).collect() }
    }
}

/// LeastAllocated over CPU and memory.
impl Default for ScoringStrategy {
    fn default() -> Self {
        Self::least(&["cpu", "memory"])
    }
}
