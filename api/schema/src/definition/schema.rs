//! The schema of one version, or of all of them: its form, its defaults, its rules.

use std::time::Duration;

use serde_json::Value;

use crate::{
    Schema,
    cel::Rules,
    field::{Errors, FieldError, Path},
    structural::legality,
};

/// How long the rules of one default may run.
const RULES_TIME: Duration = Duration::from_secs(2);

/// What may not stand at the root of a schema with a status, in the order in which the API server looks for it. The type
/// has its place there.
const NOT_AT_ROOT: [&str; 23] = [
    "id",
    "$schema",
    "$ref",
    "type",
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];
const AT_ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

/// Checks the document of `openAPIV3Schema`, which stands at `at`. Rules are read only over a schema that is structural
/// and, at their place and below, has no keyword that is wrong.
pub(super) fn check(document: &Value, has_status: bool, at: &Path<'_>, errors: &mut Errors) {
    if has_status {
        check_root(document, at, errors);
    }
    let checked = legality::check(document, at);
    let Some(schema) = checked.schema.as_ref().filter(|_| checked.takes_rules) else {
        errors.extend(checked.errors);
        return;
    };
    let mut of_rules = Rules::compile(schema, at).1;
    if of_rules.is_empty() {
        check_defaults_by_rules(schema, at, errors);
    }
    of_rules.retain(|error| !is_above_any(&error.field, &checked.errors));
    errors.extend(checked.errors);
    errors.extend(of_rules);
}

/// Whether the place of a rule, to which an error belongs, is above one of the other errors or the same.
fn is_above_any(field: &str, others: &Errors) -> bool {
    let place = field.split(".x-kubernetes-validations").next().unwrap_or_default();
    others
        .iter()
        .filter_map(|other| other.field.strip_prefix(place))
        .any(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a document has a default anywhere.
pub(super) fn has_default(document: &Value) -> bool {
    document.get("default").is_some_and(|default| !default.is_null()) || legality::children(document).any(has_default)
}

/// A status is checked by the schema of its field alone, so what the root says about the whole object would be lost.
fn check_root(document: &Value, at: &Path<'_>, errors: &mut Errors) {
    let Some(keyword) = NOT_AT_ROOT.into_iter().find(|keyword| is_set(document, keyword)) else { return };
    let whose = "of the schema if the status subresource is enabled";
    if keyword == "type" {
        let detail = format!("only \"object\" is allowed as the type at the root {whose}");
        errors.invalid(&at.child("type"), &document["type"], detail);
    } else {
        errors.invalid(at, document, format!("only {AT_ROOT} fields are allowed at the root {whose}"));
    }
}

/// Whether a keyword says something that may not stand at the root.
fn is_set(document: &Value, keyword: &str) -> bool {
    let is_pointer = ["default", "not", "additionalProperties", "additionalItems"].contains(&keyword);
    match &document[keyword] {
        Value::Null => false,
        Value::String(type_) if keyword == "type" => !type_.is_empty() && type_ != "object",
        _ if is_pointer => true,
        Value::Bool(flag) => *flag,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(_) => true,
    }
}

/// A default must follow the rules at its place and below: as a value that stays what it is, and as a new one.
fn check_defaults_by_rules(schema: &Schema, at: &Path<'_>, errors: &mut Errors) {
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let (rules, _) = Rules::compile(schema, at);
        let mut wrong = rules.evaluate(default, Some(default), RULES_TIME);
        if wrong.is_empty() {
            wrong = rules.evaluate(default, None, RULES_TIME);
        }
        let here = at.child("default").to_string();
        for error in &wrong {
            errors.add(FieldError { field: below(&here, &error.field), ..error.clone() });
        }
    }
    if let Some(items) = schema.items.as_deref() {
        check_defaults_by_rules(items, &at.child("items"), errors);
    }
    for (name, field) in &schema.properties {
        check_defaults_by_rules(field, &at.child("properties").key(name), errors);
    }
}

/// A path of a value, which rules name from the value itself, below the place of the value.
fn below(place: &str, field: &str) -> String {
    match field {
        "<nil>" => place.to_owned(),
        key if key.starts_with('[') => format!("{place}{key}"),
        field => format!("{place}.{field}"),
    }
}
