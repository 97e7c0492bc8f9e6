//! What may stand in the metrics, behavior and target of a HorizontalPodAutoscaler.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

/// Where each type of metric is described, in the order in which they are looked at.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;
const POSITIVE: &str = "must be positive";
const EITHER: &str = "must set either a target raw value or a target utilization";
const NOT_BOTH: &str = "may not set both a target raw value and a target utilization";

/// Checks the object that something is about.
pub(super) fn reference(target: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let text = target[field].as_str().unwrap_or_default();
        if text.is_empty() {
            errors.required(&at.child(field), "");
        }
        for message in names::path_segment(text) {
            errors.invalid(&at.child(field), text, message);
        }
    }
}

/// Checks the list of metrics.
pub(super) fn metrics(metrics: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, metric) in metrics.as_array().into_iter().flatten().enumerate() {
        self::metric(metric, &at.index(index), errors);
    }
}

fn metric(metric: &Value, at: &Path<'_>, errors: &mut Errors) {
    let kind = metric["type"].as_str().unwrap_or_default();
    if kind.is_empty() {
        errors.required(&at.child("type"), "must specify a metric source type");
    }
    if !TYPES.contains(&kind) {
        errors.not_supported(&at.child("type"), kind, &TYPES);
    }
    let present: Vec<&str> =
        SOURCES.iter().map(|(_, field)| *field).filter(|field| metric[*field].is_object()).collect();
    if let Some(first) = present.first() {
        source(first, &metric[*first], &at.child(first), errors);
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == kind).map(|(_, field)| *field);
    if expected.is_none() {
        // The real server says so twice.
        errors.not_supported(&at.child("type"), kind, &TYPES);
    }
    if let Some(field) = expected.filter(|field| !present.contains(field)) {
        errors.required(&at.child(field), "must populate information for the given metric source");
    }
    if present.len() > 1 {
        for field in present.iter().filter(|field| Some(**field) != expected) {
            errors.forbidden(&at.child(field), "must populate the given metric source only");
        }
    }
}

fn source(field: &str, source: &Value, at: &Path<'_>, errors: &mut Errors) {
    let target = &source["target"];
    let is_set = |name: &str| !target[name].is_null();
    let target_at = at.child("target");
    if field == "object" {
        reference(&source["describedObject"], &at.child("describedObject"), errors);
    }
    if matches!(field, "resource" | "containerResource") {
        if source["name"].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child("name"), "must specify a resource name");
        }
        if field == "containerResource" && source["container"].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child("container"), "must specify a container");
        }
    } else {
        metric_name(&source["metric"]["name"], &at.child("metric"), errors);
    }
    self::target(target, &target_at, errors);
    let average_at = target_at.child("averageValue");
    match field {
        "object" if !is_set("value") && !is_set("averageValue") => {
            errors.required(&average_at, "must set either a target value or averageValue");
        }
        "external" if is_set("value") && is_set("averageValue") => {
            errors.forbidden(
                &target_at.child("value"),
                "may not set both a target value for metric and a per-pod target",
            );
        }
        "external" if !is_set("value") && !is_set("averageValue") => {
            errors.required(&average_at, "must set either a target value for metric or a per-pod target");
        }
        "pods" if !is_set("averageValue") => {
            errors.required(&average_at, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" if !is_set("averageUtilization") && !is_set("averageValue") => {
            errors.required(&target_at.child("averageUtilization"), EITHER);
        }
        "resource" | "containerResource" if is_set("averageUtilization") && is_set("averageValue") => {
            errors.forbidden(&average_at, NOT_BOTH);
        }
        _ => {}
    }
}

fn metric_name(name: &Value, at: &Path<'_>, errors: &mut Errors) {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        errors.required(&at.child("name"), "must specify a metric name");
    }
    for message in names::path_segment(name) {
        errors.invalid(&at.child("name"), name, message);
    }
}

fn target(target: &Value, at: &Path<'_>, errors: &mut Errors) {
    let kind = target["type"].as_str().unwrap_or_default();
    if kind.is_empty() {
        errors.required(&at.child("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        errors.invalid(&at.child("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"] {
        if let Some(text) = target[field].as_str()
            && text.parse::<Quantity>().is_ok_and(|amount| amount.signum() != 1)
        {
            errors.invalid(&at.child(field), text, POSITIVE);
        }
    }
    if let Some(percent) = target["averageUtilization"].as_i64().filter(|percent| *percent < 1) {
        errors.invalid(&at.child("averageUtilization"), percent, "must be greater than 0");
    }
}

/// Checks how fast the number of pods may change.
pub(super) fn behavior(behavior: &Value, at: &Path<'_>, errors: &mut Errors) {
    for direction in ["scaleUp", "scaleDown"] {
        if behavior[direction].is_object() {
            rules(&behavior[direction], &at.child(direction), errors);
        }
    }
}

fn rules(rules: &Value, at: &Path<'_>, errors: &mut Errors) {
    let window_at = at.child("stabilizationWindowSeconds");
    match rules["stabilizationWindowSeconds"].as_i64() {
        Some(seconds) if seconds < 0 => {
            errors.invalid(&window_at, seconds, "must be greater than or equal to zero");
        }
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            let message = format!("must be less than or equal to {WINDOW_SECONDS_MAX}");
            errors.invalid(&window_at, seconds, message);
        }
        _ => {}
    }
    let choices = ["Disabled", "Max", "Min"];
    if let Some(choice) = rules["selectPolicy"].as_str().filter(|choice| !choices.contains(choice)) {
        errors.not_supported(&at.child("selectPolicy"), choice, &choices);
    }
    let list_at = at.child("policies");
    let policies = rules["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    if policies.is_empty() {
        errors.required(&list_at, "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let at = list_at.index(index);
        let kind = policy["type"].as_str().unwrap_or_default();
        if !matches!(kind, "Percent" | "Pods") {
            errors.not_supported(&at.child("type"), kind, &["Percent", "Pods"]);
        }
        for field in ["value", "periodSeconds"] {
            let number = policy[field].as_i64().unwrap_or_default();
            if number <= 0 {
                errors.invalid(&at.child(field), number, "must be greater than zero");
            }
        }
        let period = policy["periodSeconds"].as_i64().unwrap_or_default();
        if period > PERIOD_SECONDS_MAX {
            let message = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.invalid(&at.child("periodSeconds"), period, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_metric_says_what_it_is_of_and_nothing_else() {
        let refused = |metric: Value| {
            let mut errors = Errors::new();
            metrics(&json!([metric]), &Path::root("metrics"), &mut errors);
            errors.to_string()
        };
        let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
        assert_eq!(refused(json!({"type": "Resource", "resource": cpu})), "[]");
        assert_eq!(
            refused(json!({"type": "Pods", "resource": cpu})),
            "metrics[0].pods: Required value: must populate information for the given metric source"
        );
        let both = json!({"name": "cpu", "target": {"type": "Value", "averageUtilization": 50, "averageValue": "1"}});
        assert_eq!(
            refused(json!({"type": "Resource", "resource": both})),
            format!("metrics[0].resource.target.averageValue: Forbidden: {NOT_BOTH}")
        );
    }
}
