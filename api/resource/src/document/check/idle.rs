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
        check_columns(&version["additionalPrinterColumns"], &here.child("additionalPrinterColumns"), &mut errors);
        let subresources = here.child("subresources");
        check_scale(&version["subresources"]["scale"], &subresources.child("scale"), &mut errors);
    }
    errors
}

fn check_columns(columns: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = text(column, "jsonPath");
        if let Some(Err(error)) = path.starts_with('.').then(|| JsonPath::parse(path)) {
            let detail = format!("{error}; a server that cannot read it shows neither this column nor those after it");
            errors.invalid(&at.index(index).child("jsonPath"), path, detail);
        }
    }
}

/// A scale is read and written at single fields.
fn check_scale(scale: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
        let path = text(scale, field);
        let is_plain = JsonPath::parse(path).is_ok_and(|path| path.is_plain());
        if path.starts_with('.') && !is_plain {
            errors.invalid(&at.child(field), path, "is no path of fields alone, so that scaling fails");
        }
    }
}
