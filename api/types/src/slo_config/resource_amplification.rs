//! `resource-amplification-config`: how much more than it has a node may promise.

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
use crate::protocol::Labels;

/// How much more nodes promise. What is absent is as inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceAmplificationStrategy {
    /// Whether nodes promise more than they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// By what factor, by resource; at least 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_amplification_ratio: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceAmplificationSection {
    node_configs: Vec<NodeStrategy<ResourceAmplificationStrategy>>,
}

/// The key with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceAmplificationConfig {
    /// For nodes that nothing else is said about.
    pub cluster: ResourceAmplificationStrategy,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeStrategy<ResourceAmplificationStrategy>>,
}

impl Default for ResourceAmplificationConfig {
    fn default() -> Self {
        let cluster = ResourceAmplificationStrategy { enable: Some(false), ..ResourceAmplificationStrategy::default() };
        Self { cluster, nodes: Vec::new() }
    }
}

impl ResourceAmplificationConfig {
    /// Reads the key; an absent or empty one gives the defaults.
    pub fn parse(text: Option<&str>) -> Result<Self, DecodeError> {
        let default = Self::default();
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(default) };
        let section: Inline<ResourceAmplificationSection, ResourceAmplificationStrategy> = decode(text)?;
        let cluster = laid_over(&default.cluster, &section.second);
        let nodes = section.first.node_configs.into_iter();
        let nodes = nodes.map(|node| NodeStrategy { second: laid_over(&cluster, &node.second), first: node.first });
        Ok(Self { nodes: nodes.collect(), cluster })
    }

    /// What holds on a node with these labels.
    pub fn for_node(&self, labels: &Labels) -> &ResourceAmplificationStrategy {
        first_match(&self.nodes, labels).unwrap_or(&self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_merge_by_resource() {
        let config = ResourceAmplificationConfig::parse(Some(
            r#"{"enable":true,"resourceAmplificationRatio":{"cpu":1.1,"memory":2.1},
                "nodeConfigs":[{"nodeSelector":{},"resourceAmplificationRatio":{"cpu":1.5}}]}"#,
        ))
        .unwrap();
        let ratios = &config.for_node(&Labels::new()).resource_amplification_ratio;
        assert_eq!(ratios, &BTreeMap::from([("cpu".to_owned(), 1.5), ("memory".to_owned(), 2.1)]));
        assert_eq!(ResourceAmplificationConfig::parse(Some("")), Ok(ResourceAmplificationConfig::default()));
    }
}
