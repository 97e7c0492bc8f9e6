//! `cpu-normalization-config`: how much faster some CPUs are than others.

use std::collections::BTreeMap;

use koord_resource::{
    Schema,
    go_json::{DecodeError, Inline},
};
use serde::{Deserialize, Serialize};

use super::{
    decode,
    strategy::{NodeStrategy, first_match, laid_over},
};
use crate::{node_annotations::CpuBasicInfo, protocol::Labels};

/// How much faster CPUs are. What is absent is as inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuNormalizationStrategy {
    /// Whether nodes are told how much faster their CPUs are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// For models that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_ratio: Option<f64>,
    /// For each model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ratio_model: BTreeMap<String, ModelRatios>,
}

/// How much faster one model of CPU is, depending on what is switched on. 1.0 is as fast as the reference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelRatios {
    /// With neither hyper-threading nor turbo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_ratio: Option<f64>,
    /// With hyper-threading alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyper_thread_enabled_ratio: Option<f64>,
    /// With turbo alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turbo_enabled_ratio: Option<f64>,
    /// With both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyper_thread_turbo_enabled_ratio: Option<f64>,
}

impl CpuNormalizationStrategy {
    /// The ratio of a node with this CPU; none where neither its model nor a default says.
    pub fn ratio(&self, cpu: &CpuBasicInfo) -> Option<f64> {
        let model = self.ratio_model.get(&cpu.cpu_model);
        let ratio = model.and_then(|model| match (cpu.hyper_thread_enabled, cpu.turbo_enabled) {
            (true, true) => model.hyper_thread_turbo_enabled_ratio,
            (true, false) => model.hyper_thread_enabled_ratio,
            (false, true) => model.turbo_enabled_ratio,
            (false, false) => model.base_ratio,
        });
        ratio.or(self.default_ratio)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CpuNormalizationSection {
    node_configs: Vec<NodeStrategy<CpuNormalizationStrategy>>,
}

/// The key with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuNormalizationConfig {
    /// For nodes that nothing else is said about.
    pub cluster: CpuNormalizationStrategy,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeStrategy<CpuNormalizationStrategy>>,
}

impl Default for CpuNormalizationConfig {
    fn default() -> Self {
        let cluster = CpuNormalizationStrategy { enable: Some(false), ..CpuNormalizationStrategy::default() };
        Self { cluster, nodes: Vec::new() }
    }
}

impl CpuNormalizationConfig {
    /// Reads the key; an absent or empty one gives the defaults.
    pub fn parse(text: Option<&str>) -> Result<Self, DecodeError> {
        let default = Self::default();
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(default) };
        let section: Inline<CpuNormalizationSection, CpuNormalizationStrategy> = decode(text)?;
        let cluster = laid_over(&default.cluster, &section.second);
        let nodes = section.first.node_configs.into_iter();
        let nodes = nodes.map(|node| NodeStrategy { second: laid_over(&cluster, &node.second), first: node.first });
        Ok(Self { nodes: nodes.collect(), cluster })
    }

    /// What holds on a node with these labels.
    pub fn for_node(&self, labels: &Labels) -> &CpuNormalizationStrategy {
        first_match(&self.nodes, labels).unwrap_or(&self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_and_what_is_switched_on_choose_the_ratio() {
        let config = CpuNormalizationConfig::parse(Some(
            r#"{"enable":true,"defaultRatio":1.1,"ratioModel":{"X":{"baseRatio":1.5,"hyperThreadEnabledRatio":1.2}},
                "nodeConfigs":[{"nodeSelector":{"matchLabels":{"pool":"a"}},"ratioModel":{"X":{"baseRatio":2}}}]}"#,
        ))
        .unwrap();
        let cpu = |hyper_thread_enabled| CpuBasicInfo {
            cpu_model: "X".to_owned(),
            hyper_thread_enabled,
            ..CpuBasicInfo::default()
        };
        let everywhere = config.for_node(&Labels::new());
        assert_eq!(everywhere.ratio(&cpu(false)), Some(1.5));
        assert_eq!(everywhere.ratio(&cpu(true)), Some(1.2));
        assert_eq!(everywhere.ratio(&CpuBasicInfo::default()), Some(1.1));
        let pool = config.for_node(&Labels::from([("pool".to_owned(), "a".to_owned())]));
        assert_eq!((pool.enable, pool.ratio(&cpu(false)), pool.ratio(&cpu(true))), (Some(true), Some(2.0), Some(1.1)));
    }
}
