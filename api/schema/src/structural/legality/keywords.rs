//! Keywords that the API server forbids, and those that must fit each other: list types, keys, the form of rules.

use std::collections::HashSet;

use serde_json::Value;

use super::{META_FIELDS, entries, is_set, is_true, items, structure::type_error, text, values_schema};
use crate::field::{Errors, Path};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the keywords of a whole document.
pub(super) fn check(document: &Value, at: &Path<'_>, errors: &mut Errors) {
    if is_true(document, "nullable") {
        errors.forbidden(&at.child("nullable"), "nullable cannot be true at the root");
    }
    keywords(document, at, &Context { root: true, ..Context::default() }, errors);
}

/// What a schema node must respect because of where it stands.
#[derive(Clone, Default)]
struct Context {
    root: bool,
    inside_meta: bool,
    /// Why defaults are forbidden here.
    no_defaults: Option<String>,
}

fn keywords(schema: &Value, at: &Path<'_>, around: &Context, errors: &mut Errors) {
    standard_keywords(schema, at, around, errors);
    if is_true(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.forbidden(&at.child("uniqueItems"), detail);
    }
    let inner = Context { root: false, ..around.clone() };
    if let Some(additional) = schema.get("additionalProperties") {
        let here = at.child("additionalProperties");
        if is_set(schema, "properties") && *additional != Value::Bool(true) {
            errors.forbidden(&here, "additionalProperties and properties are mutual exclusive");
        }
        if let Some(values) = values_schema(schema) {
            let mut around = inner.clone();
            if around.inside_meta {
                around.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
            }
            keywords(values, &here, &around, errors);
        }
    }
    for (name, field) in entries(schema, "properties") {
        let mut around_field = inner.clone();
        let of_resource = around.root || is_true(schema, "x-kubernetes-embedded-resource");
        if of_resource && META_FIELDS.contains(&name.as_str()) {
            around_field.inside_meta = true;
            if around.root {
                around_field.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        keywords(field, &at.child("properties").key(name), &around_field, errors);
    }
    if let Some(not) = schema.get("not") {
        keywords(not, &at.child("not"), &inner, errors);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (index, part) in items(schema, name) {
            keywords(part, &at.child(name).index(index), &inner, errors);
        }
    }
    for (name, definition) in entries(schema, "definitions") {
        keywords(definition, &at.child("definitions").key(name), &inner, errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        keywords(items, &at.child("items"), &inner, errors);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        errors.invalid(&at.child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined");
    }
    map_type(schema, at, errors);
    list_type(schema, at, errors);
    list_keys(schema, at, errors);
    for (index, rule) in items(schema, "x-kubernetes-validations") {
        rule_form(schema, rule, &at.child("x-kubernetes-validations").index(index), errors);
    }
}

fn standard_keywords(schema: &Value, at: &Path<'_>, around: &Context, errors: &mut Errors) {
    let type_ = text(schema, "type");
    if !type_.is_empty() && !TYPES.contains(&type_) {
        errors.not_supported(&at.child("type"), type_, &TYPES);
    }
    if let Some(why) = &around.no_defaults
        && schema.get("default").is_some_and(|default| !default.is_null())
    {
        errors.forbidden(&at.child("default"), format!("must not be set {why}"));
    }
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if is_set(schema, keyword) {
            errors.forbidden(&at.child(keyword), format!("{keyword} is not supported"));
        }
    }
    if type_ == "null" {
        errors.forbidden(&at.child("type"), "type cannot be set to null, use nullable as an alternative");
    }
    if schema.get("items").is_some_and(Value::is_array) {
        errors.forbidden(&at.child("items"), "items must be a schema object and not an array");
    }
    if around.inside_meta && is_true(schema, "x-kubernetes-embedded-resource") {
        errors.forbidden(&at.child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
    }
}

fn map_type(schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let map_type = text(schema, "x-kubernetes-map-type");
    if map_type.is_empty() {
        return;
    }
    if text(schema, "type") != "object" {
        type_error(errors, at, text(schema, "type"), "must be object if x-kubernetes-map-type is specified");
    }
    if !["atomic", "granular"].contains(&map_type) {
        errors.not_supported(&at.child("x-kubernetes-map-type"), map_type, &["atomic", "granular"]);
    }
}

fn list_type(schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let has_keys = is_set(schema, "x-kubernetes-list-map-keys");
    let here = at.child("x-kubernetes-list-type");
    if !list_type.is_empty() {
        let item = schema.get("items").unwrap_or(&Value::Null);
        let item_at = at.child("items");
        if text(schema, "type") != "array" {
            type_error(errors, at, text(schema, "type"), "must be array if x-kubernetes-list-type is specified");
        } else if list_type == "set" {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            match (text(item, "type"), text(item, "x-kubernetes-list-type"), text(item, "x-kubernetes-map-type")) {
                ("array", inner, _) if !inner.is_empty() && inner != "atomic" => {
                    errors.invalid(&item_at.child("x-kubernetes-list-type"), inner, detail);
                }
                ("object", _, inner) if inner != "atomic" => {
                    errors.invalid(&item_at.child("x-kubernetes-map-type"), Value::Null, detail);
                }
                _ => {}
            }
        }
        if !["atomic", "set", "map"].contains(&list_type) {
            errors.not_supported(&here, list_type, &["atomic", "set", "map"]);
        }
    }
    if has_keys {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            "" => errors.required(&here, detail),
            "map" => {}
            other => errors.invalid(&here, other, detail),
        }
    }
}

fn list_keys(schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let list_type = text(schema, "x-kubernetes-list-type");
    let keys_at = at.child("x-kubernetes-list-map-keys");
    let items_at = at.child("items");
    let fields_at = items_at.child("properties");
    let item = schema.get("items").filter(|items| items.is_object());
    let all_keys = schema.get("x-kubernetes-list-map-keys").cloned().unwrap_or_default();
    let keys: Vec<&str> = all_keys.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if list_type == "map" {
        if keys.is_empty() {
            errors.required(&keys_at, "must not be empty if x-kubernetes-list-type is map");
        }
        if schema.get("items").is_none() {
            errors.required(&items_at, "must have a schema if x-kubernetes-list-type is map");
        }
        if let Some(item) = item {
            if text(item, "type") == "object" {
                let mut seen = HashSet::new();
                for key in &keys {
                    match item.get("properties").and_then(|fields| fields.get(key)) {
                        Some(field) if ["array", "object"].contains(&text(field, "type")) => errors.invalid(
                            &fields_at.key(key).child("type"),
                            text(item, "type"),
                            "must be a scalar type if parent array's x-kubernetes-list-type is map",
                        ),
                        Some(_) => {}
                        None => errors.invalid(&keys_at, &all_keys, "entries must all be names of item properties"),
                    }
                    if !seen.insert(*key) {
                        errors.invalid(&keys_at, &all_keys, "must not contain duplicate entries");
                    }
                }
            } else {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.invalid(&items_at.child("type"), text(item, "type"), detail);
            }
        }
    }
    let Some(item) = item.filter(|_| ["set", "map"].contains(&list_type)) else { return };
    if is_true(item, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.forbidden(&items_at.child("nullable"), detail);
    }
    if list_type != "map" {
        return;
    }
    let required: HashSet<&str> = items(item, "required").filter_map(|(_, name)| name.as_str()).collect();
    for key in keys {
        let Some(field) = item.get("properties").and_then(|fields| fields.get(key)) else { continue };
        if !required.contains(key) && field.get("default").is_none_or(Value::is_null) {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.required(&fields_at.key(key).child("default"), detail);
        }
        if is_true(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&fields_at.key(key).child("nullable"), detail);
        }
    }
}

/// The form of one CEL rule; what the expression says is checked elsewhere.
fn rule_form(schema: &Value, rule: &Value, at: &Path<'_>, errors: &mut Errors) {
    let breaks = |text: &str| text.contains(['\n', '\r']);
    let (expression, message) = (text(rule, "rule").trim(), text(rule, "message").trim());
    if expression.is_empty() {
        errors.required(&at.child("rule"), "rule is not specified");
    } else if is_set(rule, "message") && message.is_empty() {
        errors.invalid(&at.child("message"), text(rule, "message"), "must be non-empty if specified");
    } else if breaks(message) {
        errors.invalid(&at.child("message"), text(rule, "message"), "must not contain line breaks");
    } else if breaks(expression) && message.is_empty() {
        errors.required(&at.child("message"), "message must be specified if rule contains line breaks");
    }
    if is_set(rule, "messageExpression") && text(rule, "messageExpression").trim().is_empty() {
        errors.required(&at.child("messageExpression"), "messageExpression must be non-empty if specified");
    }
    if let Some(reason) = rule.get("reason").filter(|reason| !reason.is_null())
        && !REASONS.contains(&reason.as_str().unwrap_or_default())
    {
        errors.not_supported(&at.child("reason"), reason, &REASONS);
    }
    let field_path = text(rule, "fieldPath");
    if field_path.is_empty() {
        return;
    }
    let here = at.child("fieldPath");
    if field_path.trim().is_empty() {
        errors.invalid(&here, field_path, "must be non-empty if specified");
    }
    if breaks(field_path) {
        errors.invalid(&here, field_path, "must not contain line breaks");
    }
    if !is_field_path(schema, field_path) {
        errors.invalid(&here, field_path, "must be a valid path");
    }
}

/// Whether a rule's `fieldPath`, such as `.a.b` or `.m['k']`, leads to something that the schema declares.
fn is_field_path(schema: &Value, path: &str) -> bool {
    let Some(steps) = field_path_steps(path) else { return false };
    let mut place = schema;
    for (name, _) in &steps {
        let declared = place.get("properties").and_then(|fields| fields.get(name));
        let next = declared.or_else(|| values_schema(place));
        match next {
            Some(next) => place = next,
            None => return false,
        }
    }
    !steps.is_empty()
}

/// The steps of a rule's `fieldPath`, each with whether it was written `['…']`; `None` where it is no such path.
pub fn field_path_steps(path: &str) -> Option<Vec<(String, bool)>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let mut name = String::new();
            let mut characters = quoted.char_indices();
            loop {
                match characters.next()? {
                    (_, '\\') => name.push(characters.next()?.1),
                    (at, '\'') => {
                        rest = quoted[at..].strip_prefix("']")?;
                        break;
                    }
                    (_, character) => name.push(character),
                }
            }
            steps.push((name, true));
        } else {
            let dotted = rest.strip_prefix('.')?;
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            if end == 0 {
                return None;
            }
            steps.push((dotted[..end].to_owned(), false));
            rest = &dotted[end..];
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_paths_are_taken_apart() {
        let steps =
            |path| field_path_steps(path).map(|steps| steps.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_eq!(steps(".a.b['c.d']"), Some(vec!["a".into(), "b".into(), "c.d".into()]));
        assert_eq!(steps("a"), None);
        assert_eq!(steps(".a..b"), None);
        assert_eq!(steps(".a['b"), None);
    }
}
