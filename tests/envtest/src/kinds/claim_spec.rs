//! What a claim of storage asks for, wherever it stands: an object of its own, or the template of one in a pod.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use super::selectors;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Checks the spec of a claim.
pub(super) fn check(spec: &Value, at: &Path<'_>, errors: &mut Errors) {
    let modes_at = at.child("accessModes");
    let modes: Vec<&str> = spec["accessModes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if modes.is_empty() {
        errors.required(&modes_at, "at least 1 access mode is required");
    }
    selectors::check(&spec["selector"], &at.child("selector"), errors);
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.not_supported(&modes_at, mode, &ACCESS_MODES);
    }
    let is_other = |mode: &&&str| **mode != "ReadWriteOncePod" && ACCESS_MODES.contains(*mode);
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(|mode| is_other(&mode)) {
        errors.forbidden(&modes_at, "may not use ReadWriteOncePod with other access modes");
    }
    let resources_at = at.child("resources");
    let storage_at = resources_at.key("storage");
    match spec["resources"]["requests"]["storage"].as_str().and_then(|text| text.parse::<Quantity>().ok()) {
        None => errors.required(&storage_at, ""),
        Some(size) if size.signum() <= 0 => {
            errors.invalid(&storage_at, size.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = spec[field].as_str().unwrap_or_default();
        if !class.is_empty() {
            for message in names::dns1123_subdomain(class) {
                errors.invalid(&at.child(field), class, message);
            }
        }
    }
    if let Some(mode) = spec["volumeMode"].as_str().filter(|mode| !VOLUME_MODES.contains(mode)) {
        errors.not_supported(&at.child("volumeMode"), mode, &VOLUME_MODES);
    }
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if source.is_object() {
            data_source(source, &at.child(field), errors);
        }
    }
}

fn data_source(source: &Value, at: &Path<'_>, errors: &mut Errors) {
    for field in ["name", "kind"] {
        if source[field].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child(field), "");
        }
    }
    let group = source["apiGroup"].as_str().unwrap_or_default();
    if group.is_empty() && source["kind"] != "PersistentVolumeClaim" {
        errors.invalid(at, &source["kind"], "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        for message in names::dns1123_subdomain(group) {
            errors.invalid(&at.child("apiGroup"), group, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_says_how_and_how_much() {
        let refused = |spec: Value| {
            let mut errors = Errors::new();
            check(&spec, &Path::root("spec"), &mut errors);
            errors.to_string()
        };
        let storage = json!({"requests": {"storage": "1Gi"}});
        assert_eq!(refused(json!({"accessModes": ["ReadWriteOnce"], "resources": storage})), "[]");
        assert_eq!(
            refused(json!({"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]})),
            "[spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes, spec.resources[storage]: Required value]"
        );
    }
}
