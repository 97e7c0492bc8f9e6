//! Roles and their bindings.

use koord_schema::field::{Errors, FieldError, Mistake, Path};
use serde_json::{Value, json};

use super::pod_template::{fill, items};
use crate::{names::NameRule, strategy::Strategy};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) struct Roles;

impl Strategy for Roles {
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn set_defaults(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            fill(object, "rules", Value::Null);
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let rules_at = Path::root("rules");
        for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
            let at = rules_at.index(index);
            let is_empty = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
            if is_empty("verbs") {
                errors.required(&at.child("verbs"), "verbs must contain at least one value");
            }
            if !is_empty("nonResourceURLs") {
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

    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check_create(new, errors);
    }
}

pub(super) struct Bindings;

impl Strategy for Bindings {
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
        let kind = object["roleRef"]["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "Role" | "ClusterRole") {
            errors.not_supported(&at.child("kind"), kind, &["ClusterRole", "Role"]);
        }
        if object["roleRef"]["name"].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child("name"), "");
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
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
