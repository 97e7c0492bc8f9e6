//! Roles and their bindings.

use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::{Value, json};

use super::{
    pod_template::{fill, items},
    selectors,
};
use crate::{
    names::NameRule,
    strategy::{Strategy, WriteContext},
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) struct Roles {
    pub(super) is_cluster: bool,
}

impl Strategy for Roles {
    fn creates_on_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> (usize, usize) {
        (2, 5)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        show_rules(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {
        show_rules(new);
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        if let Some(rule) = object.get("aggregationRule").filter(|rule| rule.is_object()) {
            let rule_at = Path::root("aggregationRule");
            let at = rule_at.child("clusterRoleSelectors");
            let selectors = rule["clusterRoleSelectors"].as_array().map(Vec::as_slice).unwrap_or_default();
            if selectors.is_empty() {
                errors.required(&at, "at least one clusterRoleSelector required if aggregationRule is non-nil");
            }
            for (index, selector) in selectors.iter().enumerate() {
                let at = at.index(index);
                if !selectors::check(selector, &at, errors) {
                    errors.invalid(&at, Value::Null, "invalid label selector.");
                }
            }
        }
        let rules_at = Path::root("rules");
        for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
            let at = rules_at.index(index);
            let is_empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
            if is_empty("verbs") {
                errors.required(&at.child("verbs"), "verbs must contain at least one value");
            }
            if !is_empty("nonResourceURLs") {
                if !self.is_cluster {
                    errors.invalid(
                        &at.child("nonResourceURLs"),
                        &rule["nonResourceURLs"],
                        "namespaced rules cannot apply to non-resource URLs",
                    );
                }
                if !is_empty("apiGroups") || !is_empty("resources") || !is_empty("resourceNames") {
                    errors.invalid(
                        &at.child("nonResourceURLs"),
                        &rule["nonResourceURLs"],
                        "rules cannot apply to both regular resources and non-resource URLs",
                    );
                }
                continue;
            }
            if is_empty("apiGroups") {
                errors.required(&at.child("apiGroups"), "resource rules must supply at least one api group");
            }
            if is_empty("resources") {
                errors.required(&at.child("resources"), "resource rules must supply at least one resource");
            }
        }
    }

    /// Reports every mistake twice, as kube-apiserver does: the checks of an update contain those of the object.
    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
        self.check_create(new, errors);
    }
}

/// The list is there even when it grants nothing.
fn show_rules(object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        fill(object, "rules", Value::Null);
    }
}

pub(super) struct Bindings {
    pub(super) is_cluster: bool,
}

impl Strategy for Bindings {
    fn creates_on_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> (usize, usize) {
        (2, 5)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for subject in items(object, "subjects") {
            if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
                fill(subject, "apiGroup", json!(GROUP));
            }
        }
        if let Some(role) = object.get_mut("roleRef").and_then(Value::as_object_mut)
            && role.get("apiGroup").and_then(Value::as_str).unwrap_or_default().is_empty()
        {
            role.insert("apiGroup".to_owned(), json!(GROUP));
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("roleRef");
        let group = object["roleRef"]["apiGroup"].as_str().unwrap_or_default();
        if group != GROUP {
            errors.not_supported(&at.child("apiGroup"), group, &[GROUP]);
        }
        let kind = object["roleRef"]["kind"].as_str().unwrap_or_default();
        let kinds: &[&str] = if self.is_cluster { &["ClusterRole"] } else { &["Role", "ClusterRole"] };
        if !kinds.contains(&kind) {
            errors.not_supported(&at.child("kind"), kind, kinds);
        }
        let name = object["roleRef"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        }
        for message in NameRule::PathSegment.check(name, false) {
            errors.invalid(&at.child("name"), name, message);
        }
        let subjects_at = Path::root("subjects");
        for (index, subject) in object["subjects"].as_array().into_iter().flatten().enumerate() {
            self.check_subject(subject, &subjects_at.index(index), errors);
        }
    }

    /// Reports every mistake of the object twice, as that of a role.
    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
        self.check_create(new, errors);
        if new["roleRef"] != old["roleRef"] {
            let part = |name: &str| new["roleRef"][name].as_str().unwrap_or_default();
            errors.add(FieldError {
                mistake: Mistake::Invalid,
                field: "roleRef".to_owned(),
                value: format!(
                    r#"{{"APIGroup":"{}","Kind":"{}","Name":"{}"}}"#,
                    part("apiGroup"),
                    part("kind"),
                    part("name")
                ),
                detail: "cannot change roleRef".to_owned(),
            });
        }
    }
}

impl Bindings {
    fn check_subject(&self, subject: &Value, at: &Path<'_>, errors: &mut Errors) {
        let part = |name: &str| subject[name].as_str().unwrap_or_default();
        let (kind, name, group) = (part("kind"), part("name"), part("apiGroup"));
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        }
        let wanted_group = match kind {
            "ServiceAccount" => "",
            "User" | "Group" => GROUP,
            _ => {
                errors.not_supported(&at.child("kind"), kind, &["ServiceAccount", "User", "Group"]);
                return;
            }
        };
        if kind == "ServiceAccount" {
            let messages = if name.is_empty() { Vec::new() } else { names::dns1123_subdomain(name) };
            for message in messages {
                errors.invalid(&at.child("name"), name, message);
            }
        }
        if group != wanted_group {
            errors.not_supported(&at.child("apiGroup"), group, &[wanted_group]);
        }
        if kind == "ServiceAccount" && self.is_cluster && part("namespace").is_empty() {
            errors.required(&at.child("namespace"), "");
        }
    }
}
