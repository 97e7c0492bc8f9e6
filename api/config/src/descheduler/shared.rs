//! What the arguments of several plugins have in common.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

/// Namespaces: those that are named, or all but those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct Namespaces {
    /// Only these.
    pub include: Vec<String>,
    /// All but these.
    pub exclude: Vec<String>,
}

impl Namespaces {
    fn check(&self, problems: &mut Problems) {
        if !self.include.is_empty() && !self.exclude.is_empty() {
            problems.add(&[], "include and exclude cannot be set together");
        }
    }
}

/// Pods by their labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PodSelector {
    /// A name, for messages.
    pub name: String,
    /// The labels. Without it the entry is ignored.
    #[koord(opaque)]
    pub selector: Option<LabelSelector>,
}
