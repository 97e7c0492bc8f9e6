//! Events, one store in two groups with different field names.

use koord_schema::field::{Errors, FieldError, Mistake, Path};
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

/// How long one of the words of an event may be.
const WORD_BYTES_MAX: usize = 128;
/// How long its message may be.
const MESSAGE_BYTES_MAX: usize = 1024;

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
        self.check(object, errors);
        if !self.is_new {
            return;
        }
        check_series(object, errors);
        if object["eventTime"].is_null() {
            errors.required(&Path::root("eventTime"), "");
        }
        let kind = object["type"].as_str().unwrap_or_default();
        if !matches!(kind, "Normal" | "Warning") {
            errors.invalid(&Path::root("type"), "", format!("has invalid value: {kind}"));
        }
        // What this group has in place of these is `eventTime`, `series` and `reportingController`.
        let is_set = |field: &str| match &object[field] {
            Value::Null => false,
            Value::Object(source) => source.values().any(|part| part.as_str().is_some_and(|part| !part.is_empty())),
            value => *value != 0,
        };
        for (field, name) in [
            ("deprecatedFirstTimestamp", "firstTimestamp"),
            ("deprecatedLastTimestamp", "lastTimestamp"),
            ("deprecatedCount", "count"),
            ("deprecatedSource", "source"),
        ] {
            if is_set(field) {
                errors.invalid(&Path::root(name), "", "needs to be unset");
            }
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        self.check(new, errors);
        if !self.is_new {
            return;
        }
        for (field, name) in [
            ("regarding", "involvedObject"),
            ("reason", "reason"),
            ("note", "message"),
            ("deprecatedFirstTimestamp", "firstTimestamp"),
            ("deprecatedLastTimestamp", "lastTimestamp"),
            ("deprecatedCount", "count"),
            ("deprecatedSource", "source"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingController", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            if new[field] != old[field] {
                let shown = if new[field].is_object() { shown_reference(&new[field]) } else { new[field].to_string() };
                errors.add(FieldError {
                    mistake: Mistake::Invalid,
                    field: name.to_owned(),
                    value: shown,
                    detail: "field is immutable".to_owned(),
                });
            }
        }
        check_series(new, errors);
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

impl Events {
    /// What both groups ask of an event, in the words of the core group. An event with `eventTime` comes from the newer
    /// way of recording, whichever group it is written through.
    fn check(&self, object: &Value, errors: &mut Errors) {
        let subject = &object[if self.is_new { "regarding" } else { "involvedObject" }];
        let namespace = subject["namespace"].as_str().unwrap_or_default();
        let own = metadata::text(object, "namespace");
        let is_micro = !object["eventTime"].is_null();
        let belongs = match (namespace.is_empty(), is_micro) {
            (true, false) => own == "default",
            (true, true) => matches!(own, "default" | "kube-system"),
            (false, false) => own == namespace,
            (false, true) => true,
        };
        if !belongs {
            let at = Path::root("involvedObject");
            errors.invalid(&at.child("namespace"), namespace, "does not match event.namespace");
        }
        if !is_micro {
            return;
        }
        let reporter = if self.is_new { "reportingController" } else { "reportingComponent" };
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        if text(reporter).is_empty() {
            errors.required(&Path::root(reporter), "");
        }
        for message in koord_schema::names::qualified_name(text(reporter)) {
            errors.invalid(&Path::root(reporter), text(reporter), message);
        }
        for field in ["reportingInstance", "action", "reason"] {
            if text(field).is_empty() {
                errors.required(&Path::root(field), "");
            }
            if text(field).len() > WORD_BYTES_MAX {
                let message = format!("can have at most {WORD_BYTES_MAX} characters");
                errors.invalid(&Path::root(field), "", message);
            }
        }
        if text(if self.is_new { "note" } else { "message" }).len() > MESSAGE_BYTES_MAX {
            let message = format!("can have at most {MESSAGE_BYTES_MAX} characters");
            errors.invalid(&Path::root("message"), "", message);
        }
    }
}

fn check_series(object: &Value, errors: &mut Errors) {
    let series = &object["series"];
    if !series.is_object() {
        return;
    }
    let at = Path::root("series");
    if series["count"].as_i64().unwrap_or_default() < 2 {
        errors.invalid(&at.child("count"), "", "should be at least 2");
    }
    if series["lastObservedTime"].is_null() {
        errors.required(&at.child("lastObservedTime"), "");
    }
}

/// A reference as Go prints the struct.
fn shown_reference(reference: &Value) -> String {
    let fields = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
    let names = ["Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath"];
    let shown: Vec<String> = fields
        .iter()
        .zip(names)
        .map(|(field, name)| format!("{name:?}:{}", json!(reference[*field].as_str().unwrap_or_default())))
        .collect();
    format!("{{{}}}", shown.join(","))
}
