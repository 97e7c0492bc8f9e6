//! Kinds whose only own rules are which half a request writes and when the generation moves.

use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value};

use super::{
    pod_template::{self, below, fill, items},
    warnings, workload_checks,
};
use crate::{
    names::NameRule,
    strategy::{Generation, StatusKeeps, Strategy, WriteContext},
};

/// A kind without further rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) status: bool,
    pub(super) generation: Generation,
    pub(super) returns_deleted: bool,
    pub(super) creates_on_update: bool,
    pub(super) needs_revision: bool,
    pub(super) status_keeps: StatusKeeps,
    pub(super) name_rule: NameRule,
    pub(super) metadata_checks: (usize, usize),
    pub(super) has_own_field_labels: bool,
}

impl Default for Simple {
    fn default() -> Self {
        Self {
            status: false,
            generation: Generation::Untracked,
            returns_deleted: false,
            creates_on_update: false,
            needs_revision: false,
            status_keeps: StatusKeeps::Metadata,
            name_rule: NameRule::Subdomain,
            metadata_checks: (2, 4),
            has_own_field_labels: false,
        }
    }
}

impl Strategy for Simple {
    fn name_rule(&self) -> NameRule {
        self.name_rule
    }

    fn metadata_checks(&self) -> (usize, usize) {
        self.metadata_checks
    }

    fn generation(&self) -> Generation {
        self.generation
    }

    fn has_status(&self) -> bool {
        self.status
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn allows_unconditional_update(&self) -> bool {
        !self.needs_revision
    }

    fn status_keeps(&self) -> StatusKeeps {
        self.status_keeps
    }

    fn returns_deleted(&self) -> bool {
        self.returns_deleted
    }

    fn has_own_field_labels(&self) -> bool {
        self.has_own_field_labels
    }
}

/// Leases: who holds one, and for how long.
pub(super) struct Leases;

impl Strategy for Leases {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        drop_coordinated_election(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {
        drop_coordinated_election(new);
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        let spec = &object["spec"];
        if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
            errors.invalid(&at.child("leaseDurationSeconds"), seconds, "must be greater than 0");
        }
        if let Some(count) = spec["leaseTransitions"].as_i64().filter(|count| *count < 0) {
            errors.invalid(&at.child("leaseTransitions"), count, "must be greater than or equal to 0");
        }
    }

    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
    }
}

/// The fields of a kind of election that servers have switched off.
fn drop_coordinated_election(lease: &mut Value) {
    if let Some(spec) = lease["spec"].as_object_mut() {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

/// Limits of a namespace; the list is there even when it says nothing.
pub(super) struct LimitRanges;

impl Strategy for LimitRanges {
    fn metadata_checks(&self) -> (usize, usize) {
        (1, 3)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|object| below(object, "spec")) else { return };
        for limit in items(spec, "limits").filter(|limit| limit.get("type").is_some_and(|kind| kind == "Container")) {
            // What is absent follows from what is given: a limit is the most, a request the limit or else the least.
            inherit(limit, "default", "max");
            inherit(limit, "defaultRequest", "default");
            inherit(limit, "defaultRequest", "min");
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        show_limits(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {
        show_limits(new);
    }
}

/// Gives `field` the amounts of `from` that it lacks.
fn inherit(limit: &mut Map<String, Value>, field: &str, from: &str) {
    let Some(Value::Object(amounts)) = limit.get(from).cloned() else { return };
    if amounts.is_empty() {
        return;
    }
    fill(limit, field, Value::Object(Map::new()));
    let Some(known) = below(limit, field) else { return };
    for (resource, amount) in amounts {
        fill(known, &resource, amount);
    }
}

fn show_limits(object: &mut Value) {
    if let Some(spec) = object["spec"].as_object_mut() {
        fill(spec, "limits", Value::Null);
    }
}

/// Network policies: the directions that they speak of follow from their rules.
pub(super) struct NetworkPolicies;

impl Strategy for NetworkPolicies {
    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        fill(object, "spec", serde_json::json!({}));
        let Some(spec) = below(object, "spec") else { return };
        let types = if spec.contains_key("egress") { vec!["Ingress", "Egress"] } else { vec!["Ingress"] };
        fill(spec, "policyTypes", serde_json::json!(types));
        for rules in ["ingress", "egress"] {
            for rule in items(spec, rules) {
                for port in items(rule, "ports") {
                    fill(port, "protocol", serde_json::json!("TCP"));
                }
            }
        }
    }
}

/// Earlier states of workloads: what they were stays as it is.
pub(super) struct Revisions;

impl Strategy for Revisions {
    fn check_create(&self, object: &Value, errors: &mut Errors) {
        if let Some(revision) = object["revision"].as_i64().filter(|revision| *revision < 0) {
            errors.invalid(&Path::root("revision"), revision, "must be greater than or equal to 0");
        }
        match object.get("data").filter(|data| !data.is_null()) {
            None => errors.required(&Path::root("data"), "data is mandatory"),
            Some(data) if !data.is_object() => {
                errors.required(&Path::root("data"), "data must be a valid JSON object");
            }
            Some(_) => {}
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
        if new["data"] != old["data"] {
            errors.invalid(&Path::root("data"), &new["data"], "field is immutable");
        }
    }
}

/// Templates of pods that nobody runs.
pub(super) struct PodTemplates;

impl Strategy for PodTemplates {
    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(template) = object.get_mut("template").and_then(Value::as_object_mut) else { return };
        fill(template, "spec", serde_json::json!({}));
        if let Some(spec) = template.get_mut("spec") {
            pod_template::set_defaults(spec);
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        workload_checks::template(&object["template"], &Path::root("template"), errors);
    }

    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::of_template(&object["template"], "template")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_that_nobody_says_follow_from_those_that_are_said() {
        let complete = |mut limit: Value| {
            limit["type"] = "Container".into();
            let mut object = json!({"spec": {"limits": [limit]}});
            LimitRanges.set_defaults(&mut object);
            let limit = &object["spec"]["limits"][0];
            (limit["default"].clone(), limit["defaultRequest"].clone())
        };
        let cpu = |amount: &str| json!({ "cpu": amount });
        assert_eq!(complete(json!({"max": cpu("2")})), (cpu("2"), cpu("2")));
        assert_eq!(complete(json!({"max": cpu("2"), "default": cpu("1"), "min": cpu("0.5")})), (cpu("1"), cpu("1")));
        assert_eq!(complete(json!({"min": cpu("0.5")})), (Value::Null, cpu("0.5")));
    }
}
