//! Paths of printer columns and of the scale subresource.

use serde_json::Value;

use super::text;
use crate::field::{Errors, Path};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Checks one printer column. Whether its path can be read is found out when objects are printed.
pub(super) fn check_column(column: &Value, at: &Path<'_>, errors: &mut Errors) {
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
    } else {
        check_start(path, &here, errors);
    }
}

/// Checks the paths of a scale subresource, where there is one.
pub(super) fn check_scale(scale: &Value, at: &Path<'_>, errors: &mut Errors) {
    if !scale.is_object() {
        return;
    }
    let required = [("specReplicasPath", ".spec.", "under .spec"), ("statusReplicasPath", ".status.", "under .status")];
    for (field, prefix, place) in required {
        let (here, path) = (at.child(field), text(scale, field));
        if path.is_empty() {
            errors.required(&here, "");
        } else if check_start(path, &here, errors) && !path.starts_with(prefix) {
            errors.invalid(&here, path, format!("should be a json path {place}"));
        }
    }
    let (here, path) = (at.child("labelSelectorPath"), text(scale, "labelSelectorPath"));
    if !path.is_empty()
        && check_start(path, &here, errors)
        && !path.starts_with(".spec.")
        && !path.starts_with(".status.")
    {
        errors.invalid(&here, path, "should be a json path under either .spec or .status");
    }
}

fn check_start(path: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let starts_well = path.starts_with('.');
    if !starts_well {
        errors.invalid(at, path, "must be a simple json path starting with .");
    }
    starts_well
}
