//! Arguments of NodeNUMAResource.

use koord_configuration::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ScoringStrategy, ScoringType};
use crate::Args;

/// Arguments of NodeNUMAResource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeNumaResourceArgs {
    /// How CPUs are bound where pod and node do not say. Default FullPCPUs.
    #[serde(rename = "defaultCPUBindPolicy")]
    pub default_cpu_bind_policy: Option<CpuBindPolicy>,
    /// How nodes are scored: LeastAllocated or MostAllocated. Default LeastAllocated over CPU and memory.
    pub scoring_strategy: Option<ScoringStrategy>,
    /// How NUMA nodes are scored: LeastAllocated or MostAllocated. Default LeastAllocated over CPU and memory.
    pub numa_scoring_strategy: Option<ScoringStrategy>,
}

/// How CPUs are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    fn complete(&mut self) {
        self.default_cpu_bind_policy.get_or_insert(CpuBindPolicy::FullPcpus);
        for strategy in [&mut self.scoring_strategy, &mut self.numa_scoring_strategy] {
            strategy.get_or_insert_default().complete(&["cpu", "memory"]);
        }
    }

    fn check(&self, problems: &mut Problems) {
        let strategies =
            [("scoringStrategy", &self.scoring_strategy), ("numaScoringStrategy", &self.numa_scoring_strategy)];
        for (key, strategy) in strategies {
            let type_ = strategy.as_ref().map(|strategy| strategy.type_).unwrap_or_default();
            if matches!(type_, ScoringType::BalancedAllocation | ScoringType::LeastFragmented) {
                problems.add(
                    &[key, "type"],
                    format!("the plugin has no scorer for {type_:?}; use LeastAllocated or MostAllocated"),
                );
            }
        }
    }
}
