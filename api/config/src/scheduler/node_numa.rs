//! Arguments of NodeNUMAResource.

use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

use super::{ScoringStrategy, ScoringType};
use crate::Args;

/// Arguments of NodeNUMAResource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct NodeNumaResourceArgs {
    /// How CPUs are bound where pod and node do not say.
    #[serde(rename = "defaultCPUBindPolicy")]
    #[koord(default = "FullPCPUs")]
    pub default_cpu_bind_policy: CpuBindPolicy,
    /// How nodes are scored: LeastAllocated or MostAllocated, over CPU and memory where no resource is named.
    #[koord(default = {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]})]
    pub scoring_strategy: ScoringStrategy,
    /// How NUMA nodes are scored: LeastAllocated or MostAllocated, over CPU and memory where no resource is named.
    #[koord(default = {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]})]
    pub numa_scoring_strategy: ScoringStrategy,
}

/// How CPUs are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum CpuBindPolicy {
    /// As by default.
    #[serde(rename = "")]
    Unset,
    /// To whole cores.
    #[serde(rename = "FullPCPUs")]
    FullPcpus,
    /// To one CPU per core.
    #[serde(rename = "SpreadByPCPUs")]
    SpreadByPcpus,
}

impl Args for NodeNumaResourceArgs {
    const PLUGIN: &'static str = "NodeNUMAResource";
}

impl NodeNumaResourceArgs {
    fn complete(&mut self) {
        let unset = Self::default();
        self.scoring_strategy.name_resources(unset.scoring_strategy);
        self.numa_scoring_strategy.name_resources(unset.numa_scoring_strategy);
    }

    fn check(&self, problems: &mut Problems) {
        let strategies =
            [("scoringStrategy", &self.scoring_strategy), ("numaScoringStrategy", &self.numa_scoring_strategy)];
        for (key, strategy) in strategies {
            let type_ = strategy.type_;
            if matches!(type_, ScoringType::BalancedAllocation | ScoringType::LeastFragmented) {
                problems.add(
                    &[key, "type"],
                    format!("the plugin has no scorer for {type_:?}; use LeastAllocated or MostAllocated"),
                );
            }
        }
    }
}
