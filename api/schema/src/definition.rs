//! What an API server says about a CustomResourceDefinition that is created or changed.
//!
//! Errors have the paths, reasons and words of apiextensions-apiserver 1.35, in its order. A definition is a document of
//! `apiextensions.k8s.io/v1` with its defaults ([`set_defaults`]) and its first status ([`begin_status`]).

pub mod client_config;
mod conversion;
mod names;
mod paths;
mod schema;
mod selectable;
mod versions;

use serde_json::{Value, json};

use self::versions::Versions;
use crate::{
    field::{Errors, Path},
    names::dns1123_subdomain,
};

/// Says that a definition in a protected group was approved.
pub const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Fills in what a client may leave out.
pub fn set_defaults(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if conversion.is_null() {
        *conversion = json!({"strategy": "None"});
    }
    if let Some(service) = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| json!(443));
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        let absent = names.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
        if absent && !kind.is_empty() {
            names.insert(field.to_owned(), json!(default));
        }
    }
}

/// Gives a new definition its first status: no accepted names, and the stored version.
pub fn begin_status(definition: &mut Value) {
    let stored = storage_version(definition).map_or(Value::Null, |name| json!([name]));
    if let Some(fields) = definition.as_object_mut() {
        let status = json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": stored});
        fields.insert("status".to_owned(), status);
    }
}

/// The name of the version that objects are stored in.
pub fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition["spec"]["versions"].as_array()?;
    versions.iter().find(|version| version["storage"] == true)?["name"].as_str()
}

/// Checks a definition that is created.
pub fn check_new(definition: &Value, errors: &mut Errors) {
    let root = Path::root("metadata");
    let (spec, name) = (&definition["spec"], text(&definition["metadata"], "name"));
    if name != format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group")) {
        errors.invalid(&root.child("name"), name, "must be spec.names.plural+\".\"+spec.group");
    }
    check(definition, errors);
}

/// Checks a definition that is changed. An established one serves objects, so that it keeps its kind and scope.
pub fn check_changed(new: &Value, old: &Value, is_established: bool, errors: &mut Errors) {
    check(new, errors);
    let spec = Path::root("spec");
    let names = spec.child("names");
    let mut keep = |at: &Path<'_>, pointer: &str| {
        let (new, old) = (new.pointer(pointer), old.pointer(pointer));
        if new != old {
            errors.invalid(at, new, "field is immutable");
        }
    };
    if is_established {
        keep(&spec.child("scope"), "/spec/scope");
        keep(&names.child("kind"), "/spec/names/kind");
    }
    keep(&spec.child("group"), "/spec/group");
    keep(&names.child("plural"), "/spec/names/plural");
}

/// Checks the status of a definition, of which whoever migrates objects writes the stored versions.
pub fn check_status(definition: &Value, errors: &mut Errors) {
    let status = Path::root("status");
    names::check_shapes(&definition["status"]["acceptedNames"], &status.child("acceptedNames"), errors);
}

/// Whether a group belongs to the Kubernetes community, which approves what is put there.
pub fn is_protected(group: &str) -> bool {
    group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io")
}

fn check(definition: &Value, errors: &mut Errors) {
    let spec = &definition["spec"];
    let at = Path::root("spec");
    check_group(text(spec, "group"), &at.child("group"), errors);
    check_word(text(spec, "scope"), &["Cluster", "Namespaced"], &at.child("scope"), errors);
    let versions = Versions::read(spec);
    versions.check_schemas_are_given(&at, errors);
    let preserves = spec["preserveUnknownFields"] == true;
    if preserves && versions.have_defaults() {
        let detail = "must be false in order to use defaults in the schema";
        errors.invalid(&at.child("preserveUnknownFields"), true, detail);
    }
    versions.check_each(&at, errors);
    versions.check_together(&at, errors);
    names::check(&spec["names"], &at.child("names"), errors);
    versions.check_common(&at, errors);
    let (strategy, conversion_at) = (text(&spec["conversion"], "strategy"), at.child("conversion"));
    if preserves && spec["conversion"].is_object() && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.invalid(&conversion_at.child("strategy"), strategy, detail);
    }
    conversion::check(&spec["conversion"], &conversion_at, errors);
    check_status(definition, errors);
    versions.check_stored(&definition["status"]["storedVersions"], errors);
    check_approval(definition, errors);
    if preserves {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&at.child("preserveUnknownFields"), true, detail);
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// The items of a list; none where there is no list.
fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value[field].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text that must be there, and one of `allowed`.
fn check_word(word: &str, allowed: &[&str], at: &Path<'_>, errors: &mut Errors) {
    if word.is_empty() {
        errors.required(at, "");
    } else if !allowed.contains(&word) {
        errors.not_supported(at, word, allowed);
    }
}

fn check_group(group: &str, at: &Path<'_>, errors: &mut Errors) {
    let wrong = dns1123_subdomain(group);
    if group.is_empty() {
        errors.required(at, "");
    } else if !wrong.is_empty() {
        errors.invalid(at, group, wrong.join(","));
    } else if !group.contains('.') {
        errors.invalid(at, group, "should be a domain with at least one dot");
    }
}

fn check_approval(definition: &Value, errors: &mut Errors) {
    if !is_protected(text(&definition["spec"], "group")) {
        return;
    }
    let metadata = Path::root("metadata");
    let annotations = metadata.child("annotations");
    let at = annotations.key(APPROVAL_ANNOTATION);
    let needed = format!("protected groups must have approval annotation \"{APPROVAL_ANNOTATION}\"");
    let reference = "see https://github.com/kubernetes/enhancements/pull/1111";
    match text(&definition["metadata"]["annotations"], APPROVAL_ANNOTATION) {
        "" => errors.required(&at, format!("{needed}, {reference}")),
        reason if reason.starts_with("unapproved") || is_url(reason) => {}
        other => {
            let forms = "with either a URL or a reason starting with \"unapproved\"";
            errors.invalid(&at, other, format!("{needed} {forms}, {reference}"));
        }
    }
}

/// Whether a text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| {
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        is_scheme && !rest.is_empty() && !rest.starts_with(['/', '?'])
    })
}
