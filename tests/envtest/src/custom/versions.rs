//! The versions of a definition: what each says about schema, subresources, columns and selectable fields.
//!
//! Where all versions agree on one of these, the API server speaks of it as if it stood in the definition itself.

use koord_schema::Schema;
use koord_schema::cel::Rules;
use koord_schema::field::{Errors, FieldError, Mistake, Path};
use koord_schema::names;
use koord_schema::structural::legality;
use serde::Serialize;
use serde_json::Value;

use crate::tables::json_path::JsonPath;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_FIELDS_MAX: usize = 8;
const DEPRECATION_WARNING_BYTES_MAX: usize = 256;

/// The parts of a version that may be the same for all.
const SHARED: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

/// Whether every version says the same about `part`, so that it is spoken of once.
fn is_shared(versions: &[Value], part: &str) -> bool {
    let says = |version: &Value| version.get(part).filter(|value| !value.is_null()).cloned();
    let mut all = versions.iter().map(says);
    let first = all.next().flatten();
    first.is_some() && all.all(|other| other == first)
}

/// Checks everything about versions and, after it, `rest`: the checks that the API server makes between the two.
pub(super) fn check(spec: &Value, at: &Path<'_>, errors: &mut Errors, rest: impl FnOnce(&mut Errors)) {
    let empty = Vec::new();
    let versions = spec["versions"].as_array().unwrap_or(&empty);
    let list = at.child("versions");
    if !is_shared(versions, "schema") {
        for (index, version) in versions.iter().enumerate() {
            if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
                let (here, schema) = (list.index(index), "schema");
                errors.required(&here.child(schema).child("openAPIV3Schema"), "");
            }
        }
    }
    let mut names_seen: Vec<&str> = Vec::new();
    let mut unique = true;
    for (index, version) in versions.iter().enumerate() {
        let here = list.index(index);
        let name = version["name"].as_str().unwrap_or_default();
        unique &= !names_seen.contains(&name);
        names_seen.push(name);
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.invalid(&here.child("name"), name, wrong.join(","));
        }
        check_deprecation(version, &here, errors);
        for part in SHARED {
            if !is_shared(versions, part) {
                let of_status =
                    if is_shared(versions, "subresources") { versions } else { std::slice::from_ref(version) };
                check_root(part, part, version, of_status, &here, errors);
                check_part(part, part, version, &here, errors);
            }
        }
    }
    if !unique {
        errors.add(refusal(&list, versions, "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        match &spec["versions"] {
            Value::Null => errors.invalid(&list, Value::Null, why),
            _ => errors.add(refusal(&list, versions, why)),
        }
    }
    // The first version is also the one of the field that older clients know.
    let first = versions.first().and_then(|version| version["name"].as_str()).unwrap_or_default();
    let wrong = names::dns1035_label(first);
    if !first.is_empty() && !wrong.is_empty() {
        errors.invalid(&at.child("version"), first, wrong.join(","));
    }
    rest(errors);
    for part in SHARED {
        if is_shared(versions, part) {
            let name = if part == "schema" { "validation" } else { part };
            check_root(part, name, &versions[0], versions, at, errors);
            check_part(part, name, &versions[0], at, errors);
        }
    }
}

fn check_deprecation(version: &Value, at: &Path<'_>, errors: &mut Errors) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let here = at.child("deprecationWarning");
    if version["deprecated"] != true {
        errors.invalid(&here, warning, "can only be set for deprecated versions");
    }
    if warning.is_empty() {
        errors.invalid(&here, warning, "must not be empty");
    } else if warning.chars().any(char::is_control) {
        errors.invalid(&here, warning, "must only contain printable characters");
    } else if warning.len() > DEPRECATION_WARNING_BYTES_MAX {
        let why = format!("must be <= {DEPRECATION_WARNING_BYTES_MAX} characters long");
        errors.invalid(&here, warning, why);
    }
}

/// A status is a field of its object, so an object must be at the root where one of `versions` has the subresource.
fn check_root(part: &str, name: &str, version: &Value, versions: &[Value], at: &Path<'_>, errors: &mut Errors) {
    let has_status = versions.iter().any(|version| version["subresources"]["status"].is_object());
    let schema = &version["schema"]["openAPIV3Schema"];
    let kind = schema["type"].as_str().unwrap_or_default();
    if part == "schema" && has_status && !kind.is_empty() && kind != "object" {
        let here = at.child(name);
        let root = here.child("openAPIV3Schema");
        let message =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.invalid(&root.child("type"), kind, message);
    }
}

fn check_part(part: &str, name: &str, version: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (here, value) = (at.child(name), &version[part]);
    match part {
        "schema" => {
            if let Some(schema) = value.get("openAPIV3Schema").filter(|schema| !schema.is_null()) {
                check_schema(schema, &here.child("openAPIV3Schema"), errors);
            }
        }
        "subresources" => check_scale(&value["scale"], &here.child("scale"), errors),
        "additionalPrinterColumns" => {
            for (index, column) in value.as_array().into_iter().flatten().enumerate() {
                check_column(column, &here.index(index), errors);
            }
        }
        _ => {
            let schema = &version["schema"]["openAPIV3Schema"];
            if schema.is_object() {
                check_selectable(value, schema, &here, errors);
            } else if value.as_array().is_some_and(|fields| !fields.is_empty()) {
                // That is what kube-apiserver says when the schema is missing.
                errors.invalid(&here, "", "may only be set when `version.schema.openAPIV3Schema` is not included");
            }
        }
    }
}

/// The schema first; rules are read only over a schema that holds together.
fn check_schema(schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let found = legality::check(schema, at).errors;
    if found.is_empty()
        && let Ok(schema) = serde_json::from_value::<Schema>(schema.clone())
    {
        errors.extend(Rules::compile(&schema, at).1);
    }
    errors.extend(found);
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn check_simple_path(path: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let wrong = match path {
        "" => "must not be empty",
        _ if !path.starts_with('.') => "must be a simple json path starting with .",
        _ => return true,
    };
    errors.invalid(at, path, wrong);
    false
}

fn check_scale(scale: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !scale.is_object() {
        return;
    }
    let required = [("specReplicasPath", ".spec.", "under .spec"), ("statusReplicasPath", ".status.", "under .status")];
    for (field, prefix, place) in required {
        let (here, path) = (at.child(field), text(scale, field));
        if path.is_empty() {
            errors.required(&here, "");
        } else if check_simple_path(path, &here, errors) && !path.starts_with(prefix) {
            errors.invalid(&here, path, format!("should be a json path {place}"));
        }
    }
    let (here, path) = (at.child("labelSelectorPath"), text(scale, "labelSelectorPath"));
    if !path.is_empty()
        && check_simple_path(path, &here, errors)
        && !path.starts_with(".spec.")
        && !path.starts_with(".status.")
    {
        errors.invalid(&here, path, "should be a json path under either .spec or .status");
    }
}

fn check_column(column: &Value, at: &Path<'_>, errors: &mut Errors) {
    if text(column, "name").is_empty() {
        errors.required(&at.child("name"), "");
    }
    let type_ = text(column, "type");
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if type_.is_empty() {
        errors.required(&at.child("type"), types);
    } else if !COLUMN_TYPES.contains(&type_) {
        errors.invalid(&at.child("type"), type_, types);
    }
    let format = text(column, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        errors.invalid(&at.child("format"), format, format!("must be one of {}", COLUMN_FORMATS.join(",")));
    }
    let (here, path) = (at.child("JSONPath"), text(column, "jsonPath"));
    if path.is_empty() {
        errors.required(&here, "");
    } else if check_simple_path(path, &here, errors)
        && let Err(error) = JsonPath::parse(path)
    {
        errors.invalid(&here, path, error.to_string());
    }
}

fn check_selectable(fields: &Value, schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let (here, path) = (at.index(index), text(field, "jsonPath"));
        let here = here.child("jsonPath");
        if path.is_empty() {
            errors.required(&here, "");
            continue;
        }
        if let Err(why) = selectable_type(path, schema) {
            errors.invalid(&here, path, why);
        }
        if seen.contains(&path) {
            errors.duplicate(&here, path);
        } else {
            seen.push(path);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        errors.too_many(at, seen.len(), SELECTABLE_FIELDS_MAX);
    }
}

/// Whether a path leads to a field of the schema that selectors can compare.
fn selectable_type(path: &str, schema: &Value) -> Result<(), String> {
    let Some(steps) = path.strip_prefix('.') else {
        let token = path.split(['.', '[']).next().unwrap_or_default();
        return Err(format!("is an invalid path: expected [ or . but got: {token}"));
    };
    if path.contains('[') {
        return Err("is an invalid path: array notation is not allowed".to_owned());
    }
    let mut node = schema;
    for step in steps.split('.') {
        node = &node["properties"][step];
        if !node.is_object() {
            return Err("is an invalid path: does not refer to a valid field".to_owned());
        }
    }
    match node["type"].as_str() {
        Some("string" | "boolean" | "integer") => Ok(()),
        _ => Err("must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.".to_owned()),
    }
}

/// A version as Go prints it inside an error: its own field names, in its own order.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    name: Value,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: Value,
    schema: Value,
    subresources: Value,
    additional_printer_columns: Value,
    selectable_fields: Value,
}

/// All versions, without what they share.
fn printed(versions: &[Value]) -> Vec<Printed> {
    let shared: Vec<&str> = SHARED.into_iter().filter(|part| is_shared(versions, part)).collect();
    let one = |version: &Value| {
        let own = |part: &str| if shared.contains(&part) { Value::Null } else { version[part].clone() };
        Printed {
            name: version["name"].clone(),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecated: version["deprecated"] == true,
            deprecation_warning: version["deprecationWarning"].clone(),
            schema: own("schema"),
            subresources: own("subresources"),
            additional_printer_columns: own("additionalPrinterColumns"),
            selectable_fields: own("selectableFields"),
        }
    };
    versions.iter().map(one).collect()
}

/// An error about all versions, which are shown.
fn refusal(list: &Path<'_>, versions: &[Value], why: &str) -> FieldError {
    // Text, because a JSON value would sort the fields. Writing these types does not fail.
    let value = serde_json::to_string(&printed(versions)).unwrap_or_default();
    FieldError { mistake: Mistake::Invalid, field: list.to_string(), value, detail: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_shown_in_the_order_of_gos_fields() {
        let versions = [json!({"name": "v1", "served": true}), json!({"name": "v2", "subresources": {"status": {}}})];
        assert_eq!(
            serde_json::to_string(&printed(&versions)).unwrap(),
            r#"[{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":{"status":{}},"AdditionalPrinterColumns":null,"SelectableFields":null}]"#
        );
    }
}
