//! What the arguments of several plugins have in common.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Namespaces: those that are named, or all but those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Namespaces {
    /// Only these.
    pub include: Vec<String>,
    /// All but these.
    pub exclude: Vec<String>,
}

impl Namespaces {
    pub(super) fn check(namespaces: Option<&Self>, key: &str, problems: &mut Problems) {
        if namespaces.is_some_and(|namespaces| !namespaces.include.is_empty() && !namespaces.exclude.is_empty()) {
            problems.add(&[key], "include and exclude cannot be set together");
        }
    }
}

/// Pods by their labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PodSelector {
    /// A name, for messages.
    pub name: String,
    /// The labels. Without it the entry is ignored.
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub selector: Option<LabelSelector>,
}
