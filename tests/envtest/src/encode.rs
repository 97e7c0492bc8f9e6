//! Between objects as JSON values and records as bytes.

use std::{borrow::Cow, io::Write as _, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::{
    metadata,
    registry::ResourceDef,
    store::{ChangeKind, Labels, ObjectText, Record},
};

/// Writes an object as a record of its kind at `revision`, with the line by which watches report it. An object that a
/// webhook converts comes in the version that it is stored in.
pub fn record(definition: &ResourceDef, object: &mut Value, revision: u64, change: ChangeKind) -> Record {
    metadata::of_mut(object).insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
    let labels = labels(object);
    let fields = definition
        .selectable_fields
        .iter()
        .map(|field| field_text(object.pointer(&field.pointer), &field.absent).into())
        .collect();
    let owners = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str().map(Box::from))
        .collect();
    let version: Arc<str> = match (&definition.conversion, object["apiVersion"].as_str()) {
        (Some(_), Some(version)) => Arc::from(version),
        _ => Arc::from(definition.api_version()),
    };
    let text = text(change, &head_of(&version, &definition.kind), object);
    Record { revision, version, text, labels, fields, owners }
}

fn labels(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect()
}

/// A selectable value as selectors compare it.
fn field_text<'a>(value: Option<&'a Value>, absent: &'a str) -> Cow<'a, str> {
    match value {
        None | Some(Value::Null) => Cow::Borrowed(absent),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// What ends the line of a watch, behind the object.
const EVENT_END: &[u8] = b"}\n";

/// The line of a watch, and the tail that is a part of it: metadata first, the rest in its order, no `apiVersion` and `kind`.
fn text(change: ChangeKind, head: &str, object: &Value) -> ObjectText {
    let empty = Map::new();
    let object = object.as_object().unwrap_or(&empty);
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(change.event_prefix().as_bytes());
    out.extend_from_slice(head.as_bytes());
    let start = out.len();
    out.extend_from_slice(b"\"metadata\":");
    write(&mut out, object.get("metadata").unwrap_or(&Value::Null));
    for (key, value) in object {
        if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            out.push(b',');
            write(&mut out, &Value::String(key.clone()));
            out.push(b':');
            write(&mut out, value);
        }
    }
    out.push(b'}');
    let end = out.len();
    out.extend_from_slice(EVENT_END);
    ObjectText::new(Bytes::from(out.into_boxed_slice()), start..end)
}

/// The line of a watch that reports a record as `change`. Where the record was written for that, the bytes are shared.
pub fn event(definition: &ResourceDef, head: &str, record: &Record, change: ChangeKind) -> Bytes {
    let prefix = change.event_prefix();
    let is_written =
        record.text.line().strip_prefix(prefix.as_bytes()).is_some_and(|rest| rest.starts_with(head.as_bytes()));
    if is_written && !needs_conversion(definition, record) {
        return record.text.line().clone();
    }
    let mut out = Vec::with_capacity(prefix.len() + head.len() + record.tail().len() + EVENT_END.len());
    out.extend_from_slice(prefix.as_bytes());
    append_object(&mut out, definition, head, record);
    out.extend_from_slice(EVENT_END);
    Bytes::from(out)
}

fn write(out: &mut Vec<u8>, value: &Value) {
    // Writing a JSON value into memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// `{"apiVersion":…,"kind":…,`: what stands before the tail.
pub fn head(definition: &ResourceDef) -> String {
    head_of(&definition.api_version(), &definition.kind)
}

fn head_of(api_version: &str, kind: &str) -> String {
    format!("{{\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(kind))
}

/// Appends the whole object as `definition`'s version writes it.
pub fn append_object(out: &mut Vec<u8>, definition: &ResourceDef, head: &str, record: &Record) {
    if needs_conversion(definition, record) {
        write(out, &value(definition, record));
    } else {
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(record.tail());
    }
}

/// Appends the object as an item of a list: built-in kinds leave `apiVersion` and `kind` out there.
pub fn append_item(out: &mut Vec<u8>, definition: &ResourceDef, head: &str, record: &Record) {
    if definition.custom {
        append_object(out, definition, head, record);
    } else if needs_conversion(definition, record) {
        let mut object = value(definition, record);
        if let Some(object) = object.as_object_mut() {
            object.remove("apiVersion");
            object.remove("kind");
        }
        write(out, &object);
    } else {
        out.push(b'{');
        out.extend_from_slice(record.tail());
    }
}

/// The whole object as JSON text.
pub fn object_bytes(definition: &ResourceDef, record: &Record) -> Bytes {
    let head = head(definition);
    let mut out = Vec::with_capacity(head.len() + record.tail().len());
    append_object(&mut out, definition, &head, record);
    Bytes::from(out)
}

/// The object as a value in `definition`'s version. What a webhook must convert has been converted before.
pub fn value(definition: &ResourceDef, record: &Record) -> Value {
    let version = definition.api_version();
    if *record.version != *version
        && let Some(converted) = definition.converted.get(record.revision)
    {
        return converted.clone();
    }
    let mut object = parsed(definition, record, version);
    if needs_conversion(definition, record) {
        definition.strategy.convert(&mut object, &record.version, &definition.api_version());
    }
    object
}

/// The object in the version that it is stored in.
pub fn stored_value(definition: &ResourceDef, record: &Record) -> Value {
    let mut object = parsed(definition, record, record.version.to_string());
    if let Some(conversion) = &definition.conversion {
        conversion.settle_stored(&mut object);
    }
    object
}

fn parsed(definition: &ResourceDef, record: &Record, version: String) -> Value {
    let mut text = Vec::with_capacity(record.tail().len() + 1);
    text.push(b'{');
    let _ = text.write_all(record.tail());
    // The tail was written by `tail` above.
    let mut object: Value = serde_json::from_slice(&text).unwrap_or_default();
    if let Some(object) = object.as_object_mut() {
        object.insert("apiVersion".to_owned(), Value::String(version));
        object.insert("kind".to_owned(), Value::String(definition.kind.clone()));
    }
    object
}

fn needs_conversion(definition: &ResourceDef, record: &Record) -> bool {
    definition.strategy.converts(&record.version, &definition.api_version())
}

/// A record with another `resourceVersion`: the state of an object that leaves the selection of a watch at a later revision.
pub fn at_revision(definition: &ResourceDef, record: &Record, revision: u64) -> Record {
    let mut json = vec![b'{'];
    json.extend_from_slice(record.tail());
    let mut object: Value = serde_json::from_slice(&json).unwrap_or_default();
    metadata::of_mut(&mut object).insert("resourceVersion".to_owned(), Value::String(revision.to_string()));
    Record {
        revision,
        version: Arc::clone(&record.version),
        text: text(ChangeKind::Deleted, &head_of(&record.version, &definition.kind), &object),
        labels: record.labels.clone(),
        fields: record.fields.clone(),
        owners: record.owners.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::Store;

    #[test]
    fn the_text_of_an_object_begins_with_what_all_have_and_ends_without_a_newline() {
        let collection = Store::new(crate::store::HistoryLimits::default()).collection_id("/configmaps");
        let definition = ResourceDef::new("", "v1", "ConfigMap", "configmaps", true, collection);
        let mut object =
            json!({"data": {"k": "v"}, "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
        let record = record(&definition, &mut object, 7, ChangeKind::Added);
        assert_eq!(
            object_bytes(&definition, &record),
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"},"data":{"k":"v"}}"#
        );
        let line = event(&definition, &head(&definition), &record, ChangeKind::Added);
        assert_eq!(line.as_ptr(), record.text.line().as_ptr(), "watchers share the bytes");
        let modified = event(&definition, &head(&definition), &record, ChangeKind::Modified);
        assert_eq!(
            modified,
            r#"{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"7"},"data":{"k":"v"}}}
"#
        );
        assert_eq!(line.strip_prefix(br#"{"type":"ADDED""#), modified.strip_prefix(br#"{"type":"MODIFIED""#));
    }
}
