//! Webhook configurations as they are asked: in order of name, then in the order that each lists.

use std::time::Duration;

use serde_json::Value;

use super::caller::Place;
use super::matching::Rule;
use crate::encode;
use crate::server::{ApiServer, Phase};
use koord_scheduling::Selector;

const GROUP: &str = "admissionregistration.k8s.io";
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;

/// One webhook of one configuration.
#[derive(Clone, Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) rules: Vec<Rule>,
    /// Whether other versions of a matching resource match too.
    pub(super) equivalent: bool,
    pub(super) namespace_selector: Result<Selector, String>,
    pub(super) object_selector: Result<Selector, String>,
    pub(super) conditions: Vec<String>,
    /// Whether a call that fails lets the request pass.
    pub(super) ignores_failure: bool,
    pub(super) has_side_effects: bool,
    pub(super) reinvoked: bool,
    /// The first version of reviews that both sides know.
    pub(super) review_version: Option<&'static str>,
}

/// Every webhook of a phase.
pub(super) fn webhooks(core: &ApiServer, phase: Phase) -> Vec<Webhook> {
    let plural = match phase {
        Phase::Mutating => "mutatingwebhookconfigurations",
        Phase::Validating => "validatingwebhookconfigurations",
    };
    let Some(definition) = core.registry.get(GROUP, "v1", plural) else { return Vec::new() };
    let mut found = Vec::new();
    for (_, record) in core.store.collection(definition.collection).range("", "") {
        let configuration = encode::value(definition, record);
        found.extend(configuration["webhooks"].as_array().into_iter().flatten().map(read));
    }
    found
}

fn read(webhook: &Value) -> Webhook {
    let timeout_seconds = webhook["timeoutSeconds"].as_u64().unwrap_or(TIMEOUT_SECONDS_DEFAULT);
    let conditions = webhook["matchConditions"].as_array().into_iter().flatten();
    let versions = webhook["admissionReviewVersions"].as_array().into_iter().flatten();
    Webhook {
        name: webhook["name"].as_str().unwrap_or_default().to_owned(),
        place: Place::read(&webhook["clientConfig"], Duration::from_secs(timeout_seconds)),
        rules: webhook["rules"].as_array().into_iter().flatten().map(Rule::read).collect(),
        equivalent: webhook["matchPolicy"] != "Exact",
        namespace_selector: label_selector(&webhook["namespaceSelector"]),
        object_selector: label_selector(&webhook["objectSelector"]),
        conditions: conditions
            .filter_map(|condition| condition["expression"].as_str().map(ToOwned::to_owned))
            .collect(),
        ignores_failure: webhook["failurePolicy"] == "Ignore",
        has_side_effects: !matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
        reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
        review_version: versions.into_iter().find_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            _ => None,
        }),
    }
}

/// A selector object as the text that selectors are read from.
fn label_selector(selector: &Value) -> Result<Selector, String> {
    let mut parts = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values = values.collect::<Vec<_>>().join(",");
        parts.push(match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            other => return Err(format!("\"{other}\" is not a valid label selector operator")),
        });
    }
    Selector::parse(&parts.join(","))
}
