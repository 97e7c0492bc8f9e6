//! Structurality: what is declared stands outside of `allOf` and its kin, and everything has a type.

use serde_json::{Value, json};

use super::{entries, is_set, is_true, items, text, values_schema};
use crate::{
    field::{Errors, FieldError, Path},
    pattern,
};

/// What keeps a document from being structural, in the order of its text.
pub(super) fn check(document: &Value, at: &Path<'_>) -> Vec<FieldError> {
    let mut list = Vec::new();
    invariants(document, Level::Root, at, &mut list);
    completeness(document, document, at, at, &mut list);
    list.sort_by_cached_key(ToString::to_string);
    list
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn push(list: &mut Vec<FieldError>, report: impl FnOnce(&mut Errors)) {
    let mut errors = Errors::new();
    report(&mut errors);
    list.extend(errors.iter().cloned());
}

fn invariants(schema: &Value, level: Level, at: &Path<'_>, list: &mut Vec<FieldError>) {
    let type_ = text(schema, "type");
    if type_ == "array" && schema.get("items").is_none() {
        push(list, |errors| errors.required(&at.child("items"), "must be specified"));
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        invariants(items, Level::Item, &at.child("items"), list);
    }
    for (name, field) in entries(schema, "properties") {
        invariants(field, Level::Field, &at.child("properties").key(name), list);
    }
    let has_additional = schema.get("additionalProperties").is_some();
    if has_additional && level == Level::Root {
        push(list, |errors| errors.forbidden(&at.child("additionalProperties"), "must not be used at the root"));
    }
    if let Some(values) = values_schema(schema) {
        invariants(values, Level::Field, &at.child("additionalProperties"), list);
    }

    let int_or_string = is_true(schema, "x-kubernetes-int-or-string");
    let preserves = is_true(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = is_true(schema, "x-kubernetes-embedded-resource");
    for (extension, is_set) in
        [("x-kubernetes-preserve-unknown-fields", preserves), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && is_set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            push(list, |errors| errors.invalid(&at.child(extension), true, detail));
        }
    }
    value_validation(schema, is_int_or_string_choice(schema), is_int_or_string_first_part(schema), at, list);

    if embedded && type_ != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        push(list, |errors| type_error(errors, at, type_, detail));
    } else if type_.is_empty() && !int_or_string && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        push(list, |errors| errors.required(&at.child("type"), detail));
    }
    if embedded && has_additional {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        push(list, |errors| errors.forbidden(&at.child("additionalProperties"), detail));
    }
    if level == Level::Root && !type_.is_empty() && type_ != "object" {
        push(list, |errors| errors.invalid(&at.child("type"), type_, "must be object at the root"));
    }
    let properties = at.child("properties");
    let of_resource = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        if let Some(field) = schema.pointer(&format!("/properties/{name}")).filter(|_| of_resource)
            && text(field, "type") != "string"
        {
            push(list, |errors| {
                errors.invalid(&properties.key(name).child("type"), text(field, "type"), "must be string");
            });
        }
    }
    if let Some(metadata) = schema.pointer("/properties/metadata") {
        let here = properties.key("metadata");
        if of_resource && text(metadata, "type") != "object" {
            push(list, |errors| errors.invalid(&here.child("type"), text(metadata, "type"), "must be object"));
        }
        if level == Level::Root && !restricts_only_names(metadata) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            push(list, |errors| errors.forbidden(&here, detail));
        }
    }
    if embedded && !preserves && !is_set(schema, "properties") {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        push(list, |errors| errors.required(&at.child("properties"), detail));
    }
}

pub(super) fn type_error(errors: &mut Errors, at: &Path<'_>, type_: &str, detail: &str) {
    if type_.is_empty() {
        errors.required(&at.child("type"), detail);
    } else {
        errors.invalid(&at.child("type"), type_, detail);
    }
}

/// The root's metadata may say `type: object` and restrict the two names, nothing else.
fn restricts_only_names(metadata: &Value) -> bool {
    let names_only = entries(metadata, "properties").all(|(name, _)| name == "name" || name == "generateName");
    let known = ["type", "default", "properties", "description", "title"];
    // Description and title are prose and say nothing about the structure of `metadata`, but are refused as well.
    let silent = !is_set(metadata, "description") && !is_set(metadata, "title");
    let nothing_else = metadata
        .as_object()
        .is_some_and(|fields| fields.keys().all(|name| known.contains(&name.as_str()) || !is_set(metadata, name)));
    names_only && silent && nothing_else
}

fn int_or_string_choice() -> Value {
    json!([{"type": "integer"}, {"type": "string"}])
}

fn is_int_or_string_choice(schema: &Value) -> bool {
    schema.get("anyOf").is_some_and(|choice| *choice == int_or_string_choice())
}

fn is_int_or_string_first_part(schema: &Value) -> bool {
    schema.pointer("/allOf/0").is_some_and(is_int_or_string_choice)
}

fn value_validation(
    schema: &Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    at: &Path<'_>,
    list: &mut Vec<FieldError>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any_of {
            continue;
        }
        for (index, part) in items(schema, name) {
            let skip = name == "allOf" && index == 0 && skip_first_all_of;
            nested_validation(part, skip, &at.child(name).index(index), list);
        }
    }
    if let Some(not) = schema.get("not") {
        nested_validation(not, false, &at.child("not"), list);
    }
    let expression = text(schema, "pattern");
    if !expression.is_empty()
        && let Err(error) = pattern::compile(expression)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        push(list, |errors| errors.invalid(&at.child("pattern"), expression, detail));
    }
}

/// Inside `allOf` and its kin only validations may stand, no structure.
fn nested_validation(part: &Value, skip_any_of: bool, at: &Path<'_>, list: &mut Vec<FieldError>) {
    value_validation(part, skip_any_of, false, at, list);
    if let Some(items) = part.get("items").filter(|items| items.is_object()) {
        nested_validation(items, false, &at.child("items"), list);
    }
    for (name, field) in entries(part, "properties") {
        nested_validation(field, false, &at.child("properties").key(name), list);
    }
    for (keyword, detail) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("externalDocs", "must be undefined to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let present = match keyword {
            "default" | "additionalProperties" => part.get(keyword).is_some_and(|value| !value.is_null()),
            _ => is_set(part, keyword),
        };
        if present {
            push(list, |errors| errors.forbidden(&at.child(keyword), detail));
        }
    }
    if part.pointer("/properties/metadata").is_some() {
        let detail = "must not be specified in a nested context";
        push(list, |errors| errors.forbidden(&at.child("properties").key("metadata"), detail));
    }
}

/// Whatever the root's junctors speak about must be declared outside of them.
///
/// QUIRK: only the junctors of the root are looked at, as in the API server
/// (`junctors_below_the_root_may_speak_of_undeclared_fields`).
fn completeness(
    validation: &Value,
    structure: &Value,
    structure_at: &Path<'_>,
    at: &Path<'_>,
    list: &mut Vec<FieldError>,
) {
    if let Some(not) = validation.get("not") {
        nested_completeness(not, Some(structure), structure_at, &at.child("not"), list);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in items(validation, name) {
            nested_completeness(part, Some(structure), structure_at, &at.child(name).index(index), list);
        }
    }
}

fn nested_completeness(
    validation: &Value,
    structure: Option<&Value>,
    structure_at: &Path<'_>,
    at: &Path<'_>,
    list: &mut Vec<FieldError>,
) {
    let Some(structure) = structure else {
        push(list, |errors| errors.required(structure_at, format!("because it is defined in {at}")));
        return;
    };
    completeness(validation, structure, structure_at, at, list);
    if let Some(items) = validation.get("items") {
        nested_completeness(items, structure.get("items"), &structure_at.child("items"), &at.child("items"), list);
    }
    for (name, field) in entries(validation, "properties") {
        let declared = structure.get("properties").and_then(|fields| fields.get(name));
        let (fields_at, here) = (structure_at.child("properties"), at.child("properties"));
        nested_completeness(field, declared, &fields_at.key(name), &here.key(name), list);
    }
}
