//! `resource-amplification-config`: how much more than it has a node may promise.

use std::collections::BTreeMap;

use koord_resource::{Schema, Validate};
use serde::{Deserialize, Serialize};

use super::{
    strategy::NodeStrategy,
    switchable::{Switchable, SwitchableConfig, switchable},
};

/// How much more nodes promise. What is absent is as inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceAmplificationStrategy {
    /// Whether nodes promise more than they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// By what factor, by resource; at least 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_amplification_ratio: BTreeMap<String, f64>,
}

switchable!(ResourceAmplificationStrategy beside ResourceAmplificationSection);

/// The key with everything filled in.
pub type ResourceAmplificationConfig = SwitchableConfig<ResourceAmplificationStrategy>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Labels;

    #[test]
    fn ratios_merge_by_resource() {
        let config = ResourceAmplificationConfig::parse(Some(
            r#"{"enable":true,"resourceAmplificationRatio":{"cpu":1.1,"memory":2.1},
                "nodeConfigs":[{"nodeSelector":{},"resourceAmplificationRatio":{"cpu":1.5}}]}"#,
        ))
        .unwrap();
        let ratios = &config.for_node(&Labels::new()).resource_amplification_ratio;
        assert_eq!(ratios, &BTreeMap::from([("cpu".to_owned(), 1.5), ("memory".to_owned(), 2.1)]));
        assert_eq!(ResourceAmplificationConfig::parse(None), Ok(ResourceAmplificationConfig::default()));
        let empty = ResourceAmplificationConfig::parse(Some("")).unwrap_err();
        assert_eq!(empty.to_string(), "unexpected end of JSON input");
    }
}
