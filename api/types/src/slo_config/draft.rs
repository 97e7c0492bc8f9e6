//! One key as somebody wrote it, before anything is filled in: what checks look at.

use koord_resource::go_json::{DecodeError, Inline};
use serde::Serialize;
use serde_json::Value;

use super::{
    COLOCATION_CONFIG, CPU_BURST_CONFIG, ColocationStrategy, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
    SYSTEM_CONFIG,
    colocation::ColocationSection,
    decode,
    node_slo::{CpuBurstSection, QosSection, SystemSection, ThresholdSection, Written},
    strategy::{NodeProfile, NodeStrategy},
};

/// The keys of which there are drafts, in the order in which they are checked.
pub const CHECKED_KEYS: [&str; 5] =
    [COLOCATION_CONFIG, RESOURCE_THRESHOLD_CONFIG, RESOURCE_QOS_CONFIG, SYSTEM_CONFIG, CPU_BURST_CONFIG];

/// A key as it was written. Strategies are JSON objects with the names of their types, whatever case was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// For all nodes; null where nothing is said.
    pub cluster: Value,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeDraft>,
}

/// What somebody wrote for some nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDraft {
    /// Which nodes.
    pub profile: NodeProfile,
    /// What shall hold there.
    pub strategy: Value,
}

impl Draft {
    /// Reads one of [`CHECKED_KEYS`]; of others nothing is read.
    pub fn read(key: &str, text: &str) -> Result<Self, DecodeError> {
        match key {
            COLOCATION_CONFIG => {
                let section: Inline<ColocationSection, ColocationStrategy> = decode(text)?;
                Ok(Self::of(Some(&section.second), section.first.node_configs))
            }
            RESOURCE_THRESHOLD_CONFIG => Self::of_section::<ThresholdSection>(text),
            RESOURCE_QOS_CONFIG => Self::of_section::<QosSection>(text),
            SYSTEM_CONFIG => Self::of_section::<SystemSection>(text),
            CPU_BURST_CONFIG => Self::of_section::<CpuBurstSection>(text),
            _ => Ok(Self::default()),
        }
    }

    fn of_section<W: Written>(text: &str) -> Result<Self, DecodeError> {
        let (cluster, nodes) = decode::<W>(text)?.parts();
        Ok(Self::of(cluster.as_ref(), nodes))
    }

    fn of<T: Serialize>(cluster: Option<&T>, nodes: Vec<NodeStrategy<T>>) -> Self {
        // Strategies always have JSON.
        let value = |strategy: &T| serde_json::to_value(strategy).unwrap_or_default();
        let nodes =
            nodes.into_iter().map(|node| NodeDraft { strategy: value(&node.second), profile: node.first }).collect();
        Self { cluster: cluster.map(value).unwrap_or_default(), nodes }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_filled_in_and_names_are_those_of_the_types() {
        let text = r#"{"CLUSTERSTRATEGY":{"cpuBurstPERCENT":0},"nodeStrategies":[{"name":"a","nodeSelector":{},"policy":"auto"}]}"#;
        let draft = Draft::read(CPU_BURST_CONFIG, text).unwrap();
        assert_eq!(draft.cluster, json!({"cpuBurstPercent": 0}));
        assert_eq!(draft.nodes[0].strategy, json!({"policy": "auto"}));
        assert_eq!(draft.nodes[0].profile.name, "a");
        let colocation = Draft::read(COLOCATION_CONFIG, r#"{"enable":true,"nodeConfigs":[{"enable":false}]}"#).unwrap();
        assert_eq!((colocation.cluster, colocation.nodes.len()), (json!({"enable": true}), 1));
    }

    #[test]
    fn null_says_nothing() {
        for key in CHECKED_KEYS {
            let draft = Draft::read(key, "null").unwrap();
            assert!(draft.cluster.as_object().is_none_or(serde_json::Map::is_empty) && draft.nodes.is_empty(), "{key}");
        }
    }
}
