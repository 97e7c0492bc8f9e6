//! `metadata` as every object carries it: its type, what may stand in it, and how it is cleaned.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    Schema, SchemaType,
    field::{Errors, FieldError, Mistake, Path},
    go_text, names,
};

/// Most bytes of all annotations together.
pub const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// The structure of `metadata`, with the list and map types that merging uses.
pub static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = json!({"type": "string"});
    let document = json!({
        "type": "object",
        "properties": {
            "annotations": texts,
            "creationTimestamp": text,
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": text,
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "generateName": text,
            "generation": {"type": "integer"},
            "labels": texts,
            "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {
                "type": "object",
                "properties": {
                    "apiVersion": text, "fieldsType": text, "manager": text, "operation": text, "subresource": text, "time": text,
                    "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            }},
            "name": text,
            "namespace": text,
            "ownerReferences": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object", "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "apiVersion": text, "kind": text, "name": text, "uid": text,
                        "blockOwnerDeletion": {"type": "boolean"}, "controller": {"type": "boolean"},
                    },
                },
            },
            "resourceVersion": text,
            "selfLink": text,
            "uid": text,
        },
    });
    serde_json::from_value(document).unwrap_or_default()
});

/// Drops what a typed `metadata` would not write: `null`, and empty texts, numbers, lists and maps.
pub fn drop_empty(metadata: &mut Value) {
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|name, value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(entries) => !entries.is_empty(),
            Value::Number(number) => name != "generation" || number.as_i64() != Some(0),
            Value::Bool(_) => true,
        });
    }
}

/// Why JSON cannot be read as `metadata` at all, in the words of the API server's decoder.
pub fn decoding_error(metadata: &Value) -> Option<String> {
    let Value::Object(fields) = metadata else {
        return Some(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            go_text::json_type(metadata)
        ));
    };
    let cannot = |value: &Value, field: &str, wanted: &str| {
        format!(
            "json: cannot unmarshal {} into Go struct field ObjectMeta.{field} of type {wanted}",
            go_text::json_type(value)
        )
    };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let Some(schema) = SCHEMA.properties.get(name) else { continue };
        let wrong = match (schema.type_, value) {
            (Some(SchemaType::String), Value::String(_)) => None,
            (Some(SchemaType::String), _) => Some(cannot(value, name, "string")),
            (Some(SchemaType::Integer), Value::Number(number)) if number.is_i64() => None,
            (Some(SchemaType::Integer), _) => Some(cannot(value, name, "int64")),
            (Some(SchemaType::Object), Value::Object(entries)) => entries
                .values()
                .find(|entry| !entry.is_string() && !entry.is_null())
                .map(|entry| cannot(entry, name, "string")),
            (Some(SchemaType::Object), _) => Some(cannot(value, name, "map[string]string")),
            (Some(SchemaType::Array), Value::Array(items)) if name == "finalizers" => {
                items.iter().find(|item| !item.is_string()).map(|item| cannot(item, name, "string"))
            }
            (Some(SchemaType::Array), Value::Array(_)) => None,
            (Some(SchemaType::Array), _) => {
                let wanted = match name.as_str() {
                    "ownerReferences" => "[]v1.OwnerReference",
                    "managedFields" => "[]v1.ManagedFieldsEntry",
                    _ => "[]string",
                };
                Some(cannot(value, name, wanted))
            }
            _ => None,
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

/// Checks `metadata`; `name_rule` returns the errors of a name of this kind of object.
pub fn validate(metadata: &Value, namespaced: bool, name_rule: fn(&str) -> Vec<String>, at: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, generate_name) = (text("name"), text("generateName"));
    if !generate_name.is_empty() {
        // A generated name gets a suffix, so that its prefix may end in a dash.
        let masked = generate_name.strip_suffix('-').map(|front| format!("{front}a"));
        for wrong in name_rule(masked.as_deref().unwrap_or(generate_name)) {
            errors.invalid(&at.child("generateName"), generate_name, wrong);
        }
    }
    if name.is_empty() {
        errors.required(&at.child("name"), "name or generateName is required");
    } else {
        for wrong in name_rule(name) {
            errors.invalid(&at.child("name"), name, wrong);
        }
    }
    let namespace = text("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.required(&at.child("namespace"), ""),
        (true, false) => {
            for wrong in names::dns1123_label(namespace) {
                errors.invalid(&at.child("namespace"), namespace, wrong);
            }
        }
        (false, false) => errors.forbidden(&at.child("namespace"), "not allowed on this type"),
        (false, true) => {}
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0) {
        errors.invalid(&at.child("generation"), generation, "must be greater than or equal to 0");
    }
    if let Some(labels) = metadata.get("labels") {
        validate_labels(labels, &at.child("labels"), &mut errors);
    }
    if let Some(annotations) = metadata.get("annotations") {
        validate_annotations(annotations, &at.child("annotations"), &mut errors);
    }
    if let Some(references) = metadata.get("ownerReferences") {
        validate_owner_references(references, &at.child("ownerReferences"), &mut errors);
    }
    if let Some(Value::Array(finalizers)) = metadata.get("finalizers") {
        for finalizer in finalizers.iter().filter_map(Value::as_str) {
            for wrong in names::qualified_name(finalizer) {
                errors.invalid(&at.child("finalizers"), finalizer, wrong);
            }
        }
    }
    errors
}

/// Checks the keys and values of labels.
pub fn validate_labels(labels: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        for wrong in names::qualified_name(key) {
            errors.invalid(at, key, wrong);
        }
        let value = value.as_str().unwrap_or_default();
        for wrong in names::label_value(value) {
            errors.invalid(at, value, wrong);
        }
    }
}

/// Checks the keys of annotations and their size.
pub fn validate_annotations(annotations: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut bytes = 0usize;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        bytes = bytes.saturating_add(key.len()).saturating_add(value.as_str().map_or(0, str::len));
        for wrong in names::qualified_name(&key.to_lowercase()) {
            errors.invalid(at, key, wrong);
        }
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.too_long(at, ANNOTATION_BYTES_MAX);
    }
}

/// Checks the owners of an object.
pub fn validate_owner_references(owners: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut controller: Option<&Value> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let part = |field: &str| owner[field].as_str().unwrap_or_default();
        let (api_version, kind) = (part("apiVersion"), part("kind"));
        let version = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => "",
            Some((_, version)) => version,
            None => api_version,
        };
        if version.is_empty() {
            errors.invalid(&at.child("apiVersion"), api_version, "version must not be empty");
        }
        for (field, value) in [("kind", kind), ("name", part("name")), ("uid", part("uid"))] {
            if value.is_empty() {
                errors.invalid(&at.child(field), value, "must not be empty");
            }
        }
        if kind == "Event" && api_version == "v1" {
            errors.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner["controller"] == Value::Bool(true) {
            if let Some(first) = controller {
                let named = |owner: &Value| {
                    let part = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                    format!("{}/{}", part("kind"), part("name"))
                };
                let (one, two) = (named(first), named(owner));
                let message = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {one} and {two}"
                );
                let shown: Vec<String> = owners.as_array().into_iter().flatten().map(owner_text).collect();
                errors.add(FieldError {
                    mistake: Mistake::Invalid,
                    field: at.to_string(),
                    value: format!("[{}]", shown.join(",")),
                    detail: message,
                });
            } else {
                controller = Some(owner);
            }
        }
    }
}

/// An owner as Go prints it, in the order of its fields.
fn owner_text(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let shown: Vec<String> = fields
        .iter()
        .filter(|field| !owner[**field].is_null())
        .map(|field| format!("\"{field}\":{}", owner[*field]))
        .collect();
    format!("{{{}}}", shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_metadata_is_complete() {
        assert_eq!(SCHEMA.properties.len(), 15);
    }

    #[test]
    fn wrong_metadata_is_refused_as_recorded() {
        let metadata = json!({
            "name": "x", "finalizers": ["a b"], "labels": {"/k": "v"},
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
        });
        let errors = validate(&metadata, false, names::path_segment, &Path::root("metadata"));
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], r#"metadata.labels: Invalid value: "/k": prefix part must be non-empty"#);
        assert_eq!(texts[1], r#"metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty"#);
        assert_eq!(texts[4], r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#);
        assert!(texts[5].starts_with(r#"metadata.finalizers: Invalid value: "a b": name part"#));
        assert_eq!(texts.len(), 6);
    }

    #[test]
    fn what_is_no_metadata_is_told_as_the_decoder_tells_it() {
        let error = |metadata: Value| decoding_error(&metadata).unwrap_or_default();
        assert_eq!(
            error(json!({"labels": {"a": 5}})),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
        );
        assert_eq!(
            error(json!({"finalizers": "x"})),
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string"
        );
        assert_eq!(error(json!("x")), "json: cannot unmarshal string into Go value of type v1.ObjectMeta");
        assert_eq!(error(json!({"name": "x", "labels": {"a": "b"}, "generation": 1, "ownerReferences": []})), "");
    }

    #[test]
    fn empty_fields_are_not_written() {
        let mut metadata = json!({"name": "x", "creationTimestamp": null, "labels": {}, "uid": "", "generation": 0});
        drop_empty(&mut metadata);
        assert_eq!(metadata, json!({"name": "x"}));
    }
}
