//! ResourceQuotas: what may be limited, and by which amounts.

use std::collections::BTreeSet;

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::Value;

use crate::strategy::{StatusKeeps, Strategy};

/// Numbers of objects: whole ones.
const OBJECTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
const AMOUNTS: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
];

pub(super) struct ResourceQuotas;

impl Strategy for ResourceQuotas {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Nothing
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        amounts(&object["spec"]["hard"], &at.child("hard"), errors);
        scopes(&object["spec"], &at, errors);
        scope_selector(&object["spec"], &at, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            for field in ["hard", "used"] {
                amounts(&new["status"][field], &Path::root("status").child(field), errors);
            }
        } else {
            self.check_create(new, errors);
            let named =
                |quota: &Value| -> BTreeSet<String> { texts(&quota["spec"]["scopes"]).map(str::to_owned).collect() };
            if named(new) != named(old) {
                errors.invalid(&Path::root("spec").child("scopes"), &new["spec"]["scopes"], "field is immutable");
            }
        }
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// What a scope can be of: all amounts of pods, their number alone, or claims.
fn limits_what(scope: &str) -> Option<&'static [&'static str]> {
    const PODS: [&str; 7] = ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            Some(&PODS)
        }
        "BestEffort" => Some(&PODS[..1]),
        "VolumeAttributesClass" => Some(&["persistentvolumeclaims", "requests.storage"]),
        _ => None,
    }
}

/// The standard resources of a quota that a scope cannot limit.
fn unlimited<'a>(spec: &'a Value, scope: &str) -> impl Iterator<Item = &'a String> {
    let limits = limits_what(scope);
    let resources = spec["hard"].as_object().into_iter().flatten().map(|(name, _)| name);
    resources.filter(move |name| is_standard(name) && limits.is_some_and(|known| !known.contains(&name.as_str())))
}

fn conflicts(scopes: &[&str]) -> usize {
    let pairs = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
    pairs.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).count()
}

fn scopes(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (at, scopes) = (at.child("scopes"), &spec["scopes"]);
    for scope in texts(scopes) {
        if limits_what(scope).is_none() {
            errors.invalid(&at, scopes, "unsupported scope");
        }
        for _ in unlimited(spec, scope) {
            errors.invalid(&at, scopes, "unsupported scope applied to resource");
        }
    }
    for _ in 0..conflicts(&texts(scopes).collect::<Vec<_>>()) {
        errors.invalid(&at, scopes, "conflicting scopes");
    }
}

fn scope_selector(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let selector = &spec["scopeSelector"];
    let (at, terms) = (at.child("scopeSelector"), selector["matchExpressions"].as_array());
    let at = at.child("matchExpressions");
    let mut scopes = Vec::new();
    for term in terms.into_iter().flatten() {
        let (scope, operator) =
            (term["scopeName"].as_str().unwrap_or_default(), term["operator"].as_str().unwrap_or_default());
        let has_values = term["values"].as_array().is_some_and(|values| !values.is_empty());
        if limits_what(scope).is_none() {
            errors.invalid(&at.child("scopeName"), scope, "unsupported scope");
        }
        for _ in unlimited(spec, scope) {
            errors.add(FieldError {
                mistake: Mistake::Invalid,
                field: at.to_string(),
                value: shown(selector),
                detail: "unsupported scope applied to resource".to_owned(),
            });
        }
        let is_flag = !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && limits_what(scope).is_some();
        if is_flag && operator != "Exists" {
            let message = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&at.child("operator"), operator, message);
        }
        match operator {
            "In" | "NotIn" if !has_values => {
                errors.required(
                    &at.child("values"),
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
                );
            }
            "Exists" | "DoesNotExist" if has_values => {
                errors.invalid(
                    &at.child("values"),
                    &term["values"],
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid(&at.child("operator"), operator, "not a valid selector operator"),
        }
        scopes.push(scope);
    }
    for _ in 0..conflicts(&scopes) {
        errors.invalid(&at, &spec["scopes"], "conflicting scopes");
    }
}

/// A scope selector as Go prints the struct.
fn shown(selector: &Value) -> String {
    let one = |term: &Value| {
        let (scope, operator, values) = (&term["scopeName"], &term["operator"], &term["values"]);
        format!(r#"{{"ScopeName":{scope},"Operator":{operator},"Values":{values}}}"#)
    };
    let terms: Vec<String> = selector["matchExpressions"].as_array().into_iter().flatten().map(one).collect();
    format!(r#"{{"MatchExpressions":[{}]}}"#, terms.join(","))
}

fn amounts(amounts: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (resource, amount) in amounts.as_object().into_iter().flatten() {
        let at = at.key(resource);
        name(resource, &at, errors);
        let Some(parsed) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        if parsed.is_negative() {
            errors.invalid(&at, amount, "must be greater than or equal to 0");
        }
        if is_counted(resource) && parsed.milli_value() % 1000 != 0 {
            errors.invalid(&at, amount, "must be an integer");
        }
    }
}

fn name(resource: &str, at: &Path<'_>, errors: &mut Errors) {
    let wrong = names::qualified_name(resource);
    let is_simple = !resource.contains('/');
    let is_known = is_standard(resource);
    if wrong.is_empty() && is_simple && !is_known && resource != "storage" {
        errors.invalid(at, resource, "must be a standard resource type or fully qualified");
    }
    for message in wrong {
        errors.invalid(at, resource, message);
    }
    if is_simple && !is_known {
        errors.invalid(at, resource, "must be a standard resource for quota");
    }
}

/// Whether every quota knows the resource.
fn is_standard(resource: &str) -> bool {
    let is_huge = resource.starts_with("hugepages-") || resource.starts_with("requests.hugepages-");
    OBJECTS.contains(&resource) || AMOUNTS.contains(&resource) || is_huge
}

/// Whether there is no half of it: objects, and what devices the nodes of somebody else's making have.
fn is_counted(resource: &str) -> bool {
    let is_extended =
        resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.");
    is_extended || OBJECTS.contains(&resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scope_limits_its_own_resources_and_stays() {
        let check = |new: Value, old: Option<Value>| {
            let mut errors = Errors::new();
            match old {
                Some(old) => ResourceQuotas.check_update(&json!({"spec": new}), &json!({"spec": old}), "", &mut errors),
                None => ResourceQuotas.check_create(&json!({"spec": new}), &mut errors),
            }
            errors.iter().map(|error| format!("{}: {}", error.field, error.detail)).collect::<Vec<_>>()
        };
        let best_effort = json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]});
        assert_eq!(check(best_effort.clone(), None), [""; 0]);
        assert_eq!(
            check(json!({"hard": {"cpu": "1"}, "scopes": ["BestEffort", "Other", "NotBestEffort"]}), None),
            [
                "spec.scopes: unsupported scope applied to resource",
                "spec.scopes: unsupported scope",
                "spec.scopes: conflicting scopes"
            ]
        );
        assert_eq!(check(json!({"hard": {"pods": "1"}}), Some(best_effort)), ["spec.scopes: field is immutable"]);
        let term = json!({"scopeName": "Terminating", "operator": "In"});
        assert_eq!(
            check(json!({"scopeSelector": {"matchExpressions": [term]}}), None).len(),
            2,
            "a flag has no values, and In needs some"
        );
    }

    #[test]
    fn objects_are_counted_in_whole_numbers() {
        let refused = |hard: Value| {
            let mut errors = Errors::new();
            ResourceQuotas.check_create(&json!({"spec": {"hard": hard}}), &mut errors);
            errors.to_string()
        };
        assert_eq!(refused(json!({"pods": "2", "cpu": "1500m", "requests.example.com/gpu": "1500m"})), "[]");
        assert_eq!(refused(json!({"pods": "1500m"})), r#"spec.hard[pods]: Invalid value: "1500m": must be an integer"#);
        assert_eq!(
            refused(json!({"storage": "1"})),
            r#"spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota"#
        );
    }
}
