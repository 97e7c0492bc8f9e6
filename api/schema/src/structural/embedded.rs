//! Objects inside objects: `x-kubernetes-embedded-resource`.

use serde_json::Value;

use crate::{
    AdditionalProperties, Schema,
    field::{Errors, FieldError, Path},
    names, object_meta,
};

/// Checks apiVersion, kind and metadata of every embedded object.
pub fn validate(schema: &Schema, object: &Value) -> Errors {
    let mut errors = Errors::new();
    visit(schema, object, &Path::root(""), &mut errors);
    errors
}

/// As [`validate`], for a value at a path, such as the default of a field.
pub fn validate_at(schema: &Schema, value: &Value, at: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    visit(schema, value, at, &mut errors);
    errors
}

/// The first embedded object that cannot be read as one: its apiVersion or kind is no text, its metadata is malformed.
///
/// An API server refuses the request for it (HTTP 400) before it looks at anything else.
pub fn decoding_error(schema: &Schema, object: &Value) -> Option<FieldError> {
    let mut errors = Errors::new();
    walk(schema, object, &Path::root(""), &mut errors, &|embedded, at, errors| {
        for name in ["apiVersion", "kind"] {
            if let Some(other) = embedded.get(name).filter(|value| !value.is_string()) {
                errors.invalid(&at.child(name), other, "must be a string");
            }
        }
        if let Some(metadata) = embedded.get("metadata")
            && let Some(error) = object_meta::decoding_error(metadata)
        {
            errors.invalid(&at.child("metadata"), metadata, error);
        }
    });
    errors.iter().next().cloned()
}

fn visit(schema: &Schema, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    walk(schema, value, at, errors, &validate_names);
}

type Check<'c> = &'c dyn Fn(&Value, &Path<'_>, &mut Errors);

fn walk(schema: &Schema, value: &Value, at: &Path<'_>, errors: &mut Errors, check: Check<'_>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check(value, at, errors);
            }
            for (name, field) in fields {
                if let Some(field_schema) = schema.properties.get(name) {
                    walk(field_schema, field, &at.child(name), errors, check);
                } else if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
                    walk(values, field, &at.key(name), errors, check);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = schema.items.as_deref() else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item_schema, item, &at.index(index), errors, check);
            }
        }
        _ => {}
    }
}

/// Checks apiVersion, kind and metadata of one object.
pub(super) fn validate_names(object: &Value, at: &Path<'_>, errors: &mut Errors) {
    let required_text = |name: &str, errors: &mut Errors| match object.get(name) {
        None => {
            errors.required(&at.child(name), "");
            None
        }
        Some(Value::String(text)) if text.is_empty() => {
            errors.required(&at.child(name), "");
            None
        }
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => {
            errors.invalid(&at.child(name), other, "must be a string");
            None
        }
    };
    if let Some(version) = required_text("apiVersion", errors)
        && version.matches('/').count() > 1
    {
        errors.invalid(&at.child("apiVersion"), &version, format!("unexpected GroupVersion string: {version}"));
    }
    if let Some(kind) = required_text("kind", errors) {
        let wrong = names::dns1035_label(&kind.to_lowercase());
        if !wrong.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            errors.invalid(&at.child("kind"), &kind, detail);
        }
    }
    match object.get("metadata") {
        None => {}
        Some(metadata @ Value::Object(_)) => {
            let mut named = metadata.clone();
            if let Some(fields) = named.as_object_mut()
                && fields.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
            {
                // An embedded object need not have a name yet; everything else about it is checked.
                fields.insert("name".to_owned(), Value::from("fakename"));
            }
            let namespaced = metadata.get("namespace").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            errors.extend(object_meta::validate(&named, namespaced, names::path_segment, &at.child("metadata")));
        }
        Some(other) => errors.invalid(&at.child("metadata"), other, "must be an object"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn embedded_objects_need_a_kind_and_good_labels() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "t": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}}}}}))
        .unwrap();
        let wrong = |embedded: Value| validate(&schema, &json!({"spec": {"t": embedded}})).to_string();
        assert_eq!(wrong(json!({})), "[spec.t.apiVersion: Required value, spec.t.kind: Required value]");
        assert_eq!(wrong(json!({"kind": "Pod"})), "spec.t.apiVersion: Required value");
        assert!(
            wrong(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}))
                .starts_with(r#"spec.t.metadata.labels: Invalid value: "a b": name part must consist"#)
        );
        assert_eq!(wrong(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})), "[]");
    }
}
