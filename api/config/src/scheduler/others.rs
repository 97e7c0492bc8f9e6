//! Arguments of the smaller plugins.

use std::collections::BTreeMap;

use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

use super::ScoringType;
use crate::Args;

/// Arguments of NodeResourcesFitPlus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct NodeResourcesFitPlusArgs {
    /// How each resource is scored.
    pub resources: BTreeMap<String, ResourceScore>,
}

/// How a resource is scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceScore {
    /// The rule: LeastAllocated or MostAllocated.
    #[serde(rename = "type")]
    pub type_: ScoringType,
    /// Its weight. Where the weights of what a pod requests amount to nothing, all nodes are alike.
    pub weight: i64,
}

impl Args for NodeResourcesFitPlusArgs {
    const PLUGIN: &'static str = "NodeResourcesFitPlus";
}

impl NodeResourcesFitPlusArgs {
    fn check(&self, problems: &mut Problems) {
        let fragmented = |(_, score): &(&String, &ResourceScore)| score.type_ == ScoringType::LeastFragmented;
        for (resource, _) in self.resources.iter().filter(fragmented) {
            problems.add(
                &["resources", resource, "type"],
                "the plugin has no scorer for LeastFragmented; use LeastAllocated or MostAllocated",
            );
        }
    }
}

/// Arguments of ScarceResourceAvoidance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ScarceResourceAvoidanceArgs {
    /// Resources whose nodes are kept for pods that request them.
    pub resources: Vec<String>,
}

impl Args for ScarceResourceAvoidanceArgs {
    const PLUGIN: &'static str = "ScarceResourceAvoidance";
}

/// Arguments of SchedulingHint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SchedulingHintArgs {
    /// The most nodes that a hint may name.
    #[koord(default = 100, minimum = 1)]
    pub max_hint_nodes: i64,
}

impl Args for SchedulingHintArgs {
    const PLUGIN: &'static str = "SchedulingHint";
}
