//! Events, one store in two groups with different field names.

use koord_schema::field::{Errors, Path};
use serde_json::{Map, Value, json};

use crate::{metadata, strategy::Strategy};

/// Field names: in `v1`, in `events.k8s.io/v1`.
const RENAMED: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("reportingComponent", "reportingController"),
];

/// Events as one of the two groups serves them.
pub(super) struct Events {
    /// Whether this is `events.k8s.io`.
    pub(super) is_new: bool,
}

impl Strategy for Events {
    fn metadata_checks(&self) -> (usize, usize) {
        if self.is_new { (2, 3) } else { (1, 2) }
    }

    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        // Both groups are checked in the form of the core group.
        let subject = &object[if self.is_new { "regarding" } else { "involvedObject" }];
        let subject_at = Path::root("involvedObject");
        let namespace = subject["namespace"].as_str().unwrap_or_default();
        let own = metadata::text(object, "namespace");
        let belongs = if namespace.is_empty() { own == "default" } else { own == namespace };
        if !belongs {
            errors.invalid(&subject_at.child("namespace"), namespace, "does not match event.namespace");
        }
        if !self.is_new {
            return;
        }
        if object["eventTime"].is_null() {
            errors.required(&Path::root("eventTime"), "");
        } else {
            for field in ["reportingController", "reportingInstance", "action", "reason"] {
                if object[field].as_str().unwrap_or_default().is_empty() {
                    errors.required(&Path::root(field), "");
                }
            }
        }
        let kind = object["type"].as_str().unwrap_or_default();
        if !matches!(kind, "Normal" | "Warning") {
            errors.invalid(&Path::root("type"), kind, format!("has invalid value: {kind}"));
        }
    }

    fn check_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        if !self.is_new {
            self.check_create(new, errors);
        }
    }

    fn converts(&self, from: &str, to: &str) -> bool {
        from != to
    }

    fn convert(&self, object: &mut Value, from: &str, _to: &str) {
        let from_new = from.starts_with("events.k8s.io/");
        let Some(fields) = object.as_object_mut() else { return };
        let mut renamed = Map::new();
        for (name, value) in std::mem::take(fields) {
            let other = RENAMED.iter().find_map(|(old, new)| {
                if from_new { (*new == name).then_some(*old) } else { (*old == name).then_some(*new) }
            });
            renamed.insert(other.map_or(name, ToOwned::to_owned), value);
        }
        if from_new {
            for field in ["reportingComponent", "reportingInstance"] {
                renamed.entry(field).or_insert(json!(""));
            }
        } else {
            // The new group leaves empty reporters out.
            for field in ["reportingController", "reportingInstance"] {
                if renamed.get(field) == Some(&json!("")) {
                    renamed.remove(field);
                }
            }
        }
        *fields = renamed;
    }
}
