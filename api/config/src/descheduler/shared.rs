//! What the arguments of several plugins have in common.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

/// Percentages by resource.
pub(super) type Thresholds = BTreeMap<String, f64>;

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
        check_one_list(&self.include, &self.exclude, problems);
    }
}

/// What is chosen is named, or what is not.
pub(super) fn check_one_list(include: &[String], exclude: &[String], problems: &mut Problems) {
    if !include.is_empty() && !exclude.is_empty() {
        problems.add(&[], "include and exclude cannot be set together");
    }
}

/// A selector has to be one.
pub(super) fn check_selector(selector: Option<&LabelSelector>, keys: &[&str], problems: &mut Problems) {
    if let Some(Err(error)) = selector.map(koord_scheduling::check) {
        problems.add(keys, error.to_string());
    }
}

/// The same for one that is written as a text.
pub(super) fn check_selector_text(text: &str, keys: &[&str], problems: &mut Problems) {
    if let Err(error) = koord_scheduling::Selector::parse(text) {
        problems.add(keys, error);
    }
}

/// Pods by their labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct PodSelector {
    /// A name, for messages.
    pub name: String,
    /// The labels. Without it the entry is ignored.
    #[koord(opaque)]
    pub selector: Option<LabelSelector>,
}

impl PodSelector {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.selector.as_ref(), &["selector"], problems);
    }
}
