//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration: many defaults, and what each webhook must say.

use koord_schema::{
    cel::Condition,
    definition::client_config,
    field::{Errors, Path},
    names,
};
use serde_json::{Value, json};

use super::{
    pod_template::{below, fill, items},
    selectors,
};
use crate::strategy::{Generation, Strategy};

const CONDITIONS_MAX: usize = 64;
/// What match conditions may speak of.
const VARIABLES: &[&str] = &["object", "oldObject", "request", "authorizer"];

/// Webhook configurations of one of the two kinds.
pub(super) struct WebhookConfigurations {
    pub(super) is_mutating: bool,
}

impl Strategy for WebhookConfigurations {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for webhook in items(object, "webhooks") {
            fill(webhook, "failurePolicy", json!("Fail"));
            fill(webhook, "matchPolicy", json!("Equivalent"));
            fill(webhook, "namespaceSelector", json!({}));
            fill(webhook, "objectSelector", json!({}));
            fill(webhook, "timeoutSeconds", json!(10));
            if self.is_mutating {
                fill(webhook, "reinvocationPolicy", json!("Never"));
            }
            for rule in items(webhook, "rules") {
                fill(rule, "scope", json!("*"));
            }
            if let Some(service) = below(webhook, "clientConfig").and_then(|config| below(config, "service")) {
                fill(service, "port", json!(443));
            }
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("webhooks");
        let mut seen = Vec::new();
        for (index, webhook) in list(&object["webhooks"]).iter().enumerate() {
            let (at, name) = (at.index(index), text(webhook, "name"));
            self.check(webhook, &at, errors);
            check_review_versions(&webhook["admissionReviewVersions"], &at.child("admissionReviewVersions"), errors);
            if !name.is_empty() && seen.contains(&name) {
                errors.duplicate(&at.child("name"), name);
            }
            seen.push(name);
        }
    }

    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
    }
}

impl WebhookConfigurations {
    fn check(&self, webhook: &Value, at: &Path<'_>, errors: &mut Errors) {
        check_name(text(webhook, "name"), &at.child("name"), errors);
        let rules = at.child("rules");
        for (index, rule) in list(&webhook["rules"]).iter().enumerate() {
            check_rule(rule, &rules.index(index), errors);
        }
        let mut one_of = |field: &str, words: &[&str]| {
            if let Some(word) = webhook[field].as_str().filter(|word| !words.contains(word)) {
                errors.not_supported(&at.child(field), word, words);
            }
        };
        one_of("failurePolicy", &["Fail", "Ignore"]);
        one_of("matchPolicy", &["Equivalent", "Exact"]);
        one_of("sideEffects", &["None", "NoneOnDryRun"]);
        if self.is_mutating {
            one_of("reinvocationPolicy", &["IfNeeded", "Never"]);
        }
        if !webhook["sideEffects"].is_string() {
            errors.required(&at.child("sideEffects"), "must specify one of None, NoneOnDryRun");
        }
        if let Some(seconds) = webhook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.invalid(&at.child("timeoutSeconds"), seconds, detail);
        }
        for field in ["namespaceSelector", "objectSelector"] {
            selectors::check(&webhook[field], &at.child(field), errors);
        }
        client_config::check(&webhook["clientConfig"], &at.child("clientConfig"), errors);
        check_conditions(&webhook["matchConditions"], &at.child("matchConditions"), errors);
    }
}

/// Checks a name that must have three parts, such as `validate.pods.example.com`.
fn check_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    let wrong = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.required(at, "");
    } else if !wrong.is_empty() {
        errors.invalid(at, name, wrong.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid(at, name, "should be a domain with at least three segments separated by dots");
    }
}

fn check_rule(rule: &Value, at: &Path<'_>, errors: &mut Errors) {
    let operations = at.child("operations");
    if list(&rule["operations"]).is_empty() {
        errors.required(&operations, "");
    }
    if list(&rule["operations"]).len() > 1 && has_star(&rule["operations"]) {
        errors.invalid(&operations, &rule["operations"], "if '*' is present, must not specify other operations");
    }
    for (index, operation) in list(&rule["operations"]).iter().enumerate() {
        let words = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        let operation = operation.as_str().unwrap_or_default();
        if !words.contains(&operation) {
            errors.not_supported(&operations.index(index), operation, &words);
        }
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let at = at.child(field);
        if list(&rule[field]).is_empty() {
            errors.required(&at, "");
        }
        if list(&rule[field]).len() > 1 && has_star(&rule[field]) {
            errors.invalid(&at, &rule[field], format!("if '*' is present, must not specify other {what}"));
        }
    }
    let versions = at.child("apiVersions");
    for (index, _) in list(&rule["apiVersions"]).iter().enumerate().filter(|(_, version)| **version == "") {
        errors.required(&versions.index(index), "");
    }
    check_resources(&rule["resources"], &at.child("resources"), errors);
    if let Some(scope) = rule["scope"].as_str().filter(|scope| !["*", "Cluster", "Namespaced"].contains(scope)) {
        errors.not_supported(&at.child("scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

/// Checks resources and subresources (`pods`, `pods/status`, `pods/*`, `*/status`, `*/*`, `*`), of which none may be
/// covered by another.
fn check_resources(resources: &Value, at: &Path<'_>, errors: &mut Errors) {
    let names: Vec<&str> = list(resources).iter().map(|name| name.as_str().unwrap_or_default()).collect();
    if names.is_empty() {
        errors.required(at, "");
    }
    // The resources of `x/*` and the subresources of `*/x` that were listed before.
    let (mut whole_resources, mut whole_subresources) = (Vec::new(), Vec::new());
    let mut ends_with_plain = false;
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            errors.required(&at.index(index), "");
            continue;
        }
        let Some((resource, subresource)) = name.split_once('/') else {
            ends_with_plain = *name != "*";
            continue;
        };
        let mut covered = |by: String| {
            errors.invalid(&at.index(index), *name, format!("if '{by}' is present, must not specify {name}"));
        };
        if whole_resources.contains(&resource) {
            covered(format!("{resource}/*"));
        }
        if whole_subresources.contains(&subresource) {
            covered(format!("*/{subresource}"));
        }
        if subresource == "*" {
            whole_resources.push(resource);
        }
        if resource == "*" {
            whole_subresources.push(subresource);
        }
    }
    if names.len() > 1 && names.contains(&"*/*") {
        errors.invalid(at, resources, "if '*/*' is present, must not specify other resources");
    }
    if names.contains(&"*") && ends_with_plain {
        errors.invalid(at, resources, "if '*' is present, must not specify other resources without subresources");
    }
}

fn check_review_versions(versions: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, version) in list(versions).iter().enumerate() {
        let (at, version) = (at.index(index), version.as_str().unwrap_or_default());
        for wrong in names::dns1035_label(version) {
            errors.invalid(&at, version, wrong);
        }
        if seen.contains(&version) {
            errors.invalid(&at, version, "duplicate version");
        }
        seen.push(version);
    }
    if list(versions).is_empty() {
        errors.required(at, "must specify one of v1, v1beta1");
    } else if !list(versions).iter().any(|version| version == "v1" || version == "v1beta1") {
        errors.invalid(at, versions, "must include at least one of v1, v1beta1");
    }
}

fn check_conditions(conditions: &Value, at: &Path<'_>, errors: &mut Errors) {
    let conditions = list(conditions);
    if conditions.len() > CONDITIONS_MAX {
        errors.too_many(at, conditions.len(), CONDITIONS_MAX);
    }
    let mut seen = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let (at, name, expression) = (at.index(index), text(condition, "name"), text(condition, "expression").trim());
        if expression.is_empty() {
            errors.required(&at.child("expression"), "");
        } else if let Err(mistake) = Condition::compile(expression, VARIABLES) {
            errors.invalid(&at.child("expression"), expression, mistake);
        }
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        }
        for wrong in names::qualified_name(name).into_iter().filter(|_| !name.is_empty()) {
            errors.invalid(&at.child("name"), name, wrong);
        }
        if !name.is_empty() && seen.contains(&name) {
            errors.duplicate(&at.child("name"), name);
        }
        seen.push(name);
    }
}

fn has_star(words: &Value) -> bool {
    list(words).iter().any(|word| word == "*")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Value);

    fn mistakes(change: impl FnOnce(&mut Value)) -> String {
        let mut webhook = json!({
            "name": "v.pods.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/v"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        });
        change(&mut webhook);
        let mut errors = Errors::new();
        WebhookConfigurations { is_mutating: false }.check_create(&json!({"webhooks": [webhook]}), &mut errors);
        errors.to_string()
    }

    #[test]
    fn what_a_webhook_must_say_is_told_by_its_path() {
        assert_eq!(mistakes(|_| {}), "[]");
        let cases: [(Change, &str); 12] = [
            (
                |webhook| webhook["admissionReviewVersions"] = json!(["v1", "v1"]),
                "webhooks[0].admissionReviewVersions[1]: Invalid value: \"v1\": duplicate version",
            ),
            (
                |webhook| webhook["rules"][0]["resources"] = json!(["*", "pods"]),
                "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
            ),
            (
                |webhook| webhook["rules"][0]["resources"] = json!(["pods/*", "pods/status"]),
                "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            ),
            (
                |webhook| webhook["rules"][0]["apiVersions"] = json!([""]),
                "webhooks[0].rules[0].apiVersions[0]: Required value",
            ),
            (
                |webhook| webhook["objectSelector"] = json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                |webhook| webhook["name"] = json!("short"),
                "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated by dots",
            ),
            (
                |webhook| webhook["sideEffects"] = json!("Some"),
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
            (
                |webhook| webhook["clientConfig"] = json!({}),
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                |webhook| webhook["clientConfig"]["url"] = json!("http://x/v"),
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
            (
                |webhook| webhook["timeoutSeconds"] = json!(31),
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
            (
                |webhook| webhook["matchConditions"] = json!([{"name": "n", "expression": "'str'"}]),
                "webhooks[0].matchConditions[0].expression: Invalid value: \"'str'\": must evaluate to bool but got string",
            ),
            (
                |webhook| webhook["rules"][0]["operations"] = json!([]),
                "webhooks[0].rules[0].operations: Required value",
            ),
        ];
        for (change, wanted) in cases {
            assert_eq!(mistakes(change), wanted);
        }
    }
}
