//! Rules of `metadata` that hold for every kind.

use std::collections::BTreeSet;

use koord_schema::{
    field::{Errors, Path},
    names, object_meta,
};
use serde_json::{Map, Value};

use crate::names::NameRule;

/// The annotation that holds the generation of a DaemonSet's template.
pub(crate) const DAEMON_SET_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Text of a metadata field; empty when absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Finalizers that are left.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The object's metadata for change, made when it is missing.
pub fn of_mut(object: &mut Value) -> &mut Map<String, Value> {
    make_object(child(make_object(object), "metadata"))
}

fn child<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    fields.entry(name).or_insert(Value::Null)
}

/// The fields of an object; anything else becomes an empty object.
fn make_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().unwrap_or_else(|| unreachable!("the value was just made an object"))
}

/// Removes a metadata field.
pub fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

/// Which finalizers a kind takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalizerRule {
    /// Any qualified name, as in the servers of definitions and custom resources.
    Any,
    /// The server's own, and names with a domain.
    Qualified,
}

/// Checks the metadata of a new object.
pub fn check_new(
    object: &Value,
    namespaced: bool,
    rule: NameRule,
    finalizers_rule: FinalizerRule,
    errors: &mut Errors,
) {
    let at = Path::root("metadata");
    let generate_name = text(object, "generateName");
    if !generate_name.is_empty() {
        for message in rule.check(generate_name, true) {
            errors.invalid(&at.child("generateName"), generate_name, message);
        }
    }
    let name = text(object, "name");
    if name.is_empty() {
        errors.required(&at.child("name"), "name or generateName is required");
    } else {
        for message in rule.check(name, false) {
            errors.invalid(&at.child("name"), name, message);
        }
    }
    let namespace = text(object, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.required(&at.child("namespace"), ""),
        (true, false) => {
            for message in names::dns1123_label(namespace) {
                errors.invalid(&at.child("namespace"), namespace, message);
            }
        }
        (false, false) => errors.forbidden(&at.child("namespace"), "not allowed on this type"),
        (false, true) => {}
    }
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation < 0) {
        errors.invalid(&at.child("generation"), generation, "must be greater than or equal to 0");
    }
    check_maps(object, finalizers_rule, errors);
}

/// Checks labels, annotations, owners and finalizers.
pub fn check_maps(object: &Value, finalizers_rule: FinalizerRule, errors: &mut Errors) {
    let at = Path::root("metadata");
    let metadata = &object["metadata"];
    object_meta::validate_labels(&metadata["labels"], &at.child("labels"), errors);
    object_meta::validate_annotations(&metadata["annotations"], &at.child("annotations"), errors);
    object_meta::validate_owner_references(&metadata["ownerReferences"], &at.child("ownerReferences"), errors);
    let finalizers_at = at.child("finalizers");
    for (index, finalizer) in finalizers(object).enumerate() {
        for message in names::qualified_name(finalizer) {
            errors.invalid(&finalizers_at, finalizer, message);
        }
        if finalizers_rule == FinalizerRule::Qualified && !is_well_named(finalizer) {
            let message = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&finalizers_at.index(index), finalizer, message);
        }
    }
    let all: Vec<&str> = finalizers(object).collect();
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        errors.invalid(&finalizers_at, &all[..], "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

/// Whether the finalizer is the server's own or names its domain.
fn is_well_named(finalizer: &str) -> bool {
    matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") || finalizer.contains('/')
}

/// What is said about finalizers that a writer of a custom resource adds.
pub fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before: BTreeSet<&str> = old.into_iter().flat_map(finalizers).collect();
    let added: BTreeSet<&str> = finalizers(new).filter(|finalizer| !before.contains(finalizer)).collect();
    let mut warnings = Vec::new();
    for finalizer in added {
        let wrong = names::qualified_name(finalizer).into_iter();
        warnings.extend(wrong.map(|message| format!("metadata.finalizers: {finalizer:?}: {message}")));
        if !is_well_named(finalizer) {
            let how = if finalizer.contains('.') { " including a path (/)" } else { "" };
            warnings.push(format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name{how} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

/// Drops owners that stand in the list before; gives their uids.
pub fn drop_duplicate_owners(object: &mut Value) -> Vec<String> {
    let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut uids = Vec::new();
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            uids.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    uids
}

/// Checks that a change keeps what says which object it is, and begins no new work on one that is being deleted.
pub fn check_identity(new: &Value, old: &Value, errors: &mut Errors) {
    let at = Path::root("metadata");
    if is_deleting(old) {
        let before: Vec<&str> = finalizers(old).collect();
        let added: Vec<&str> = finalizers(new).filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            let shown: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
            errors.forbidden(
                &at.child("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    shown.join(", ")
                ),
            );
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (now, before) = (&new["metadata"][field], &old["metadata"][field]);
        if now != before {
            errors.invalid(&at.child(field), now, "field is immutable");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_needs_all_four_parts() {
        let mut errors = Errors::new();
        let object = json!({"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1"}]}});
        check_new(&object, false, NameRule::Subdomain, FinalizerRule::Qualified, &mut errors);
        assert_eq!(errors.iter().count(), 3);
    }

    #[test]
    fn identity_cannot_change() {
        let mut errors = Errors::new();
        let old = json!({"metadata": {"name": "a", "uid": "1"}});
        let new = json!({"metadata": {"name": "a", "uid": "2"}});
        check_identity(&new, &old, &mut errors);
        assert_eq!(errors.to_string(), r#"metadata.uid: Invalid value: "2": field is immutable"#);
    }

    #[test]
    fn custom_resources_may_have_finalizers_without_a_path() {
        let object = |finalizers: &[&str]| json!({"metadata": {"name": "a", "finalizers": finalizers}});
        let new = object(&["a.example.com", "short", "orphan", "x.io/y"]);
        let refusals = |rule| {
            let mut errors = Errors::new();
            check_maps(&new, rule, &mut errors);
            errors.iter().count()
        };
        assert_eq!((refusals(FinalizerRule::Any), refusals(FinalizerRule::Qualified)), (0, 2));
        let warnings = finalizer_warnings(&new, Some(&object(&["short"])));
        assert_eq!(
            warnings,
            [
                r#"metadata.finalizers: "a.example.com": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"#
            ]
        );
    }
}
