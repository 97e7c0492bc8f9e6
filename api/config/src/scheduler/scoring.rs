//! How amounts of resources are scored.

use koord_configuration::{Configuration, Weight};
use serde::{Deserialize, Serialize};

/// How the amounts of a node are scored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ScoringStrategy {
    /// The rule.
    #[serde(rename = "type")]
    pub type_: ScoringType,
    /// The resources that count. Without any, those that the plugin scores by default, of equal weight.
    pub resources: Vec<ResourceWeight>,
}

/// A rule by which amounts are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceWeight {
    /// The resource.
    pub name: String,
    /// Its weight.
    pub weight: Weight,
}

impl ScoringStrategy {
    /// Counts the resources that another strategy counts, where it names none.
    pub(super) fn name_resources(&mut self, default: Self) {
        if self.resources.is_empty() {
            self.resources = default.resources;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        Args, arguments,
        scheduler::{DeviceShareArgs, NodeNumaResourceArgs},
    };

    /// What is scored with arguments that say this of the strategy.
    fn scored<A: Args>(strategy: &Value, of: fn(A) -> ScoringStrategy) -> String {
        let strategy = of(arguments(&json!({"scoringStrategy": strategy})).unwrap());
        let resources = strategy.resources.iter().map(|one| format!(" {}={}", one.name, one.weight.0));
        format!("{:?}{}", strategy.type_, resources.collect::<String>())
    }

    #[test]
    fn a_strategy_that_names_no_resources_has_those_of_its_plugin() {
        let devices = |strategy: &Value| scored(strategy, |args: DeviceShareArgs| args.scoring_strategy);
        let numa = |strategy: &Value| scored(strategy, |args: NodeNumaResourceArgs| args.scoring_strategy);
        let of_devices =
            "koordinator.sh/gpu-memory-ratio=1 koordinator.sh/gpu-memory=1 koordinator.sh/rdma=1 koordinator.sh/fpga=1";
        let (most, own) = (json!({"type": "MostAllocated"}), json!({"resources": [{"name": "a", "weight": 2}]}));
        assert_eq!(devices(&Value::Null), format!("LeastAllocated {of_devices}"));
        assert_eq!(devices(&most), format!("MostAllocated {of_devices}"));
        assert_eq!(devices(&own), "LeastAllocated a=2");
        assert_eq!(numa(&most), "MostAllocated cpu=1 memory=1");
        assert_eq!(numa(&json!({"resources": []})), "LeastAllocated cpu=1 memory=1");
    }
}
