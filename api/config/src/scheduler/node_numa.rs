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
    pub scoring_strategy: ScoringStrategy,
    /// How NUMA nodes are scored: LeastAllocated or MostAllocated, over CPU and memory where no resource is named.
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
        for strategy in [&mut self.scoring_strategy, &mut self.numa_scoring_strategy] {
            strategy.name_resources(&["cpu", "memory"]);
        }
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
