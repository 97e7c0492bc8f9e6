//! Other shapes of objects: metadata alone, and tables.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{registry::ResourceDef, request::ApiRequest};

/// How much of each object the rows of a table carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

// === impl Include ===

impl Include {
    /// Reads the `includeObject` parameter.
    pub fn read(request: &ApiRequest) -> Self {
        match request.parameter("includeObject") {
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// The object without everything but its metadata.
pub fn partial_metadata(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new())),
    })
}

/// A list of metadata; `list` is the metadata of the list itself.
pub fn partial_metadata_list(objects: &[Value], list: &Value, version: &str) -> Value {
    let items: Vec<Value> = objects.iter().map(|object| partial_metadata(object, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list,
        "items": items,
    })
}

/// A table of these objects, without the metadata of a list.
pub fn table(definition: &ResourceDef, objects: &[Value], include: Include, version: &str, now: Timestamp) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": [crate::metadata::text(object, "name"), age(object, now)]});
            match include {
                Include::None => {}
                Include::Metadata => row["object"] = partial_metadata(object, version),
                Include::Object => row["object"] = object.clone(),
            }
            row
        })
        .collect();
    let column = |name: &str, format: &str| json!({"name": name, "type": "string", "format": format, "description": "", "priority": 0});
    let _ = definition;
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {},
        "columnDefinitions": [column("Name", "name"), column("Age", "")],
        "rows": rows,
    })
}

fn age(object: &Value, now: Timestamp) -> String {
    let created = crate::metadata::text(object, "creationTimestamp").parse::<Timestamp>();
    created.map_or_else(
        |_| "<unknown>".to_owned(),
        |created| format!("{}s", now.as_second().saturating_sub(created.as_second()).max(0)),
    )
}
