//! Kinds whose only own rules are which half a request writes and when the generation moves.

use koord_schema::field::{Errors, Path};
use serde_json::Value;

use super::{
    pod_template::{self, below, fill, items},
    workload_checks,
};
use crate::{
    names::NameRule,
    strategy::{Generation, Strategy, Surroundings},
};

/// A kind without further rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) status: bool,
    pub(super) generation: Generation,
    pub(super) returns_deleted: bool,
    pub(super) creates_on_update: bool,
    pub(super) name_rule: NameRule,
    pub(super) metadata_checks: (usize, usize),
}

impl Default for Simple {
    fn default() -> Self {
        Self {
            status: false,
            generation: Generation::Untracked,
            returns_deleted: false,
            creates_on_update: false,
            name_rule: NameRule::Subdomain,
            metadata_checks: (2, 4),
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

    fn returns_deleted(&self) -> bool {
        self.returns_deleted
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

    fn prepare_create(&self, object: &mut Value, _around: &Surroundings<'_>) {
        show_limits(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str) {
        show_limits(new);
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
}
