//! What an API server accepts in a definition although it has no effect.

use koord_schema::{
    field::{Errors, Path},
    json_path::JsonPath,
};
use serde_json::Value;

use super::text;

/// Parts of a definition that never do anything.
pub(super) fn find(definition: &Value) -> Errors {
    let mut errors = Errors::new();
    let spec = Path::root("spec");
    let list = spec.child("versions");
    let versions = definition["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !versions.is_empty() && !versions.iter().any(|version| version["served"] == true) {
        errors.invalid(&list, Value::Null, "no version is served, so that there are no objects of this kind");
    }
    for (index, version) in versions.iter().enumerate() {
        let here = list.index(index);
        let schema = &version["schema"]["openAPIV3Schema"];
        let columns = here.child("additionalPrinterColumns");
        check_columns(&version["additionalPrinterColumns"], schema, &columns, &mut errors);
        let subresources = here.child("subresources");
        check_scale(&version["subresources"]["scale"], schema, &subresources.child("scale"), &mut errors);
    }
    errors
}

fn check_columns(columns: &Value, schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = text(column, "jsonPath");
        if !path.starts_with('.') {
            continue;
        }
        let detail = match JsonPath::parse(path) {
            Ok(_) if is_declared(path, schema) => continue,
            Ok(_) => "names no declared field, so that the column stays empty".to_owned(),
            Err(error) => format!("{error}; a server that cannot read it shows neither this column nor those after it"),
        };
        errors.invalid(&at.index(index).child("jsonPath"), path, detail);
    }
}

/// A scale is read and written at single fields.
fn check_scale(scale: &Value, schema: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
        let path = text(scale, field);
        if !path.starts_with('.') {
            continue;
        }
        let detail = match JsonPath::parse(path) {
            Ok(parsed) if parsed.is_plain() && is_declared(path, schema) => continue,
            Ok(parsed) if parsed.is_plain() => "names no declared field, so that scaling has no effect",
            _ => "is no path of fields alone, so that scaling fails",
        };
        errors.invalid(&at.child(field), path, detail);
    }
}

/// The fields that every object has, whatever its schema declares.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Whether all fields of a path are declared, as far as the schema says which there are.
fn is_declared(path: &str, schema: &Value) -> bool {
    // `*` selects values of any name, so the path is followed up to there.
    let followed = path.split('*').next().unwrap_or_default().trim_end_matches(['[', '.']);
    let Ok(path) = JsonPath::parse(followed) else { return true };
    let mut node = schema;
    for field in path.fields() {
        // Indexes and filters lead into the items.
        while !path.is_plain() && node["items"].is_object() {
            node = &node["items"];
        }
        let is_whole_object = std::ptr::eq(node, schema) || node["x-kubernetes-embedded-resource"] == true;
        if keeps_any_field(node) || (is_whole_object && OF_EVERY_OBJECT.contains(&field)) {
            return true;
        }
        let Some(declared) = node["properties"].get(field) else { return false };
        node = declared;
    }
    true
}

/// Whether a server keeps fields that the schema does not name; where there is no schema, it is refused for that.
fn keeps_any_field(schema: &Value) -> bool {
    let values = &schema["additionalProperties"];
    !schema.is_object()
        || schema["x-kubernetes-preserve-unknown-fields"] == true
        || values.is_object()
        || values.as_bool() == Some(true)
}
