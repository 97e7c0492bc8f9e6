//! `cpu-normalization-config`: how much faster some CPUs are than others.

use std::collections::BTreeMap;

use koord_resource::{Schema, Validate};
use serde::{Deserialize, Serialize};

use super::{
    strategy::NodeStrategy,
    switchable::{Switchable, SwitchableConfig, switchable},
};
use crate::node_annotations::CpuBasicInfo;

/// How much faster CPUs are. What is absent is as inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuNormalizationStrategy {
    /// Whether the CPU normalization ratio is written to nodes.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
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

switchable!(CpuNormalizationStrategy beside CpuNormalizationSection);

/// The key with everything filled in.
pub type CpuNormalizationConfig = SwitchableConfig<CpuNormalizationStrategy>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Labels;

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
