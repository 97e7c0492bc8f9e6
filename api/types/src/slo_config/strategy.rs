//! What is said about some nodes only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::{Schema, declare::Emit, go_json, go_json::Inline};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::protocol::Labels;

/// Which nodes are meant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeProfile {
    /// A name, for messages.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Labels of the nodes. Absent selects none, empty selects all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

impl NodeProfile {
    /// Whether a node with these labels is meant. A selector that nobody understands means no node.
    pub fn selects(&self, labels: &Labels) -> bool {
        koord_scheduling::matches(self.node_selector.as_ref(), labels).unwrap_or(false)
    }
}

/// What is said about some nodes: the profile and the strategy share one JSON object.
pub type NodeStrategy<T> = Inline<NodeProfile, T>;

/// `new` laid over `old` by the rules of [`go_json::merge`].
///
/// Values that have no JSON leave `old` in force; strategies always have.
pub(super) fn laid_over<T: Clone + Schema + Serialize + DeserializeOwned>(old: &T, new: &T) -> T {
    go_json::merge(old, new, &T::schema(Emit::default())).unwrap_or_else(|_| old.clone())
}

/// What the first profile that selects the node says.
pub(super) fn first_match<'a, T>(strategies: &'a [NodeStrategy<T>], labels: &Labels) -> Option<&'a T> {
    strategies.iter().find(|strategy| strategy.first.selects(labels)).map(|strategy| &strategy.second)
}
