//! Whether a schema may stand in a CRD: structural, complete, with sensible lists and defaults.
//!
//! The document is read as JSON, because much of what is refused here has no place in [`Schema`].

mod keywords;
mod structure;

use serde_json::Value;

use crate::{
    AdditionalProperties, Schema,
    field::{Errors, Path},
    structural::{embedded, prune, validate},
};

pub use keywords::field_path_steps;

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// What the check of a schema document gives.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What is wrong, in the API server's order.
    pub errors: Errors,
    /// The schema, where the document can be read as one.
    pub schema: Option<Schema>,
    /// Whether the schema is structural and its defaults are good, so that an API server reads its rules.
    pub takes_rules: bool,
}

/// Checks the document of `openAPIV3Schema`, which stands at `at` (`spec.validation.openAPIV3Schema`).
///
/// CEL rules are checked for their form only; what they say is the matter of the `cel` module.
pub fn check(document: &Value, at: &Path<'_>) -> Checked {
    let schema: Option<Schema> = serde_json::from_value(document.clone()).ok();
    let mut errors = Errors::new();
    let can_be_structural = !has_unsupported_keywords(document);
    if can_be_structural {
        let structural = structure::check(document, at);
        let is_structural = structural.is_empty();
        for error in structural {
            errors.add(error);
        }
        if let Some(schema) = schema.as_ref().filter(|_| is_structural) {
            check_defaults(schema, true, false, at, &mut errors);
        }
    }
    let takes_rules = can_be_structural && errors.is_empty();
    keywords::check(document, at, &mut errors);
    if errors.is_empty() && !can_be_structural {
        errors.invalid(at, "", "OpenAPIV3Schema 'schema' is not supported");
    }
    Checked { errors, schema, takes_rules }
}

fn text<'v>(schema: &'v Value, name: &str) -> &'v str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

fn entries<'v>(schema: &'v Value, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    schema.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn items<'v>(schema: &'v Value, name: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// The schema under `additionalProperties`, where it is one and no plain yes or no.
fn values_schema(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

/// Documents with these cannot be read as structural schemas at all; only the check of keywords speaks about them.
fn has_unsupported_keywords(schema: &Value) -> bool {
    let here = ["id", "$schema", "$ref", "additionalItems", "patternProperties", "definitions", "dependencies"]
        .iter()
        .any(|name| is_set(schema, name))
        || schema.get("items").is_some_and(Value::is_array);
    here || children(schema).any(has_unsupported_keywords)
}

/// The schemas that a document has directly below it.
pub(crate) fn children(schema: &Value) -> impl Iterator<Item = &Value> {
    let junctors = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| items(schema, name).map(|(_, part)| part));
    let singles = ["items", "not"].into_iter().filter_map(|name| schema.get(name).filter(|part| part.is_object()));
    entries(schema, "properties").map(|(_, part)| part).chain(values_schema(schema)).chain(singles).chain(junctors)
}

/// A schema in which what is an integer or a string may be anything: in defaults, the API server does not look.
fn of_any_type(schema: &Schema) -> Schema {
    let mut open = schema.clone();
    open.int_or_string = false;
    open.items = schema.items.as_deref().map(of_any_type).map(Box::new);
    open.properties.values_mut().for_each(|field| *field = of_any_type(field));
    if let Some(AdditionalProperties::Schema(values)) = &mut open.additional_properties {
        **values = of_any_type(values);
    }
    open
}

/// Every default must be pruned and valid. Those of metadata are checked by their form alone.
fn check_defaults(schema: &Schema, is_resource: bool, inside_meta: bool, at: &Path<'_>, errors: &mut Errors) {
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let here = at.child("default");
        let mut pruned = default.clone();
        if !inside_meta && !prune::prune_value(schema, &mut pruned).is_empty() {
            errors.invalid(&here, default, "must not have unknown fields");
        }
        let mut wrong = Errors::new();
        if is_resource && !schema.embedded_resource {
            embedded::validate_names(default, &here, &mut wrong);
        }
        wrong.extend(embedded::validate_at(schema, default, &here));
        if wrong.is_empty() {
            errors.extend(validate::validate_at(&here.to_string(), &of_any_type(schema), default));
        } else {
            errors.extend(wrong);
        }
    }
    if let Some(items) = schema.items.as_deref() {
        check_defaults(items, items.embedded_resource, inside_meta, &at.child("items"), errors);
    }
    for (name, field) in &schema.properties {
        let inside_meta = inside_meta || (is_resource && META_FIELDS.contains(&name.as_str()));
        check_defaults(field, field.embedded_resource, inside_meta, &at.child("properties").key(name), errors);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(document: Value) -> String {
        check(&document, &Path::root("s")).errors.to_string()
    }

    fn with_field(field: Value) -> Value {
        json!({"type": "object", "properties": {"f": field}})
    }

    #[test]
    fn refusals_are_worded_as_recorded() {
        let table = [
            (json!({"type": "object"}), "[]"),
            (json!({"type": "string"}), r#"s.type: Invalid value: "string": must be object at the root"#),
            (json!({}), "s.type: Required value: must not be empty at the root"),
            (with_field(json!({"type": "array"})), "s.properties[f].items: Required value: must be specified"),
            (
                with_field(json!({"type": "float"})),
                r#"s.properties[f].type: Unsupported value: "float": supported values: "array", "boolean", "integer", "number", "object", "string""#,
            ),
            (
                with_field(json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})),
                "s.properties[f].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            ),
            (
                with_field(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"})),
                r#"s.properties[f].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#,
            ),
            (
                with_field(json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"})),
                "s.properties[f].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
            ),
            (
                with_field(
                    json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
                ),
                "s.properties[f].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
            ),
            (
                with_field(json!({"type": "object", "default": {"b": 1}, "properties": {"a": {"type": "integer"}}})),
                r#"s.properties[f].default: Invalid value: {"b":1}: must not have unknown fields"#,
            ),
            (
                with_field(json!({"type": "integer", "default": "x"})),
                r#"s.properties[f].default: Invalid value: "string":  in body must be of type integer: "string""#,
            ),
            (
                with_field(json!({"type": "object", "$ref": "#/x"})),
                "s.properties[f].$ref: Forbidden: $ref is not supported",
            ),
            (
                with_field(json!({"type": "string", "pattern": "[a"})),
                r#"s.properties[f].pattern: Invalid value: "[a": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[a`"#,
            ),
            (
                with_field(json!({"type": "integer", "anyOf": [{"type": "integer"}]})),
                "s.properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
            ),
            (
                with_field(
                    json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
                ),
                "[]",
            ),
            (
                with_field(
                    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
                ),
                "s.properties[f].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ),
            (
                with_field(
                    json!({"type": "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
                ),
                r#"s.properties[f].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true"#,
            ),
            (
                json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ),
            (
                json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string"}}}}}),
                "[]",
            ),
            (
                json!({"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]}),
                "s.properties[x]: Required value: because it is defined in s.anyOf[0].properties[x]",
            ),
            (
                json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}]}),
                "s.x-kubernetes-validations[0].rule: Required value: rule is not specified",
            ),
            (
                json!({"type": "object", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".a"}]}),
                r#"s.x-kubernetes-validations[0].fieldPath: Invalid value: ".a": must be a valid path"#,
            ),
        ];
        for (document, message) in table {
            assert_eq!(wrong(document.clone()), message, "{document}");
        }
    }

    #[test]
    fn junctors_below_the_root_may_speak_of_undeclared_fields() {
        assert_eq!(
            wrong(with_field(json!({"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]}))),
            "[]"
        );
    }
}
