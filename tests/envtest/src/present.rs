//! Other shapes of objects: metadata alone, and what the rows of a table carry.

use serde_json::{Map, Value, json};

use crate::{metadata::DAEMON_SET_GENERATION, registry::ResourceDef, request::ApiRequest, status::ApiError};

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
    pub fn read(request: &ApiRequest) -> Result<Self, ApiError> {
        match request.parameter("includeObject") {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("Object") => Ok(Self::Object),
            Some("None") => Ok(Self::None),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \"{other}\": must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// The object without everything but its metadata.
pub fn partial_metadata(object: &Value, version: &str) -> Value {
    let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    hide_generation(object, &mut metadata);
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": metadata,
    })
}

/// QUIRK: the real server shapes metadata from its own form of the object, where the generation is still a field
/// (recording `table/workloads`).
fn hide_generation(object: &Value, metadata: &mut Value) {
    if object["kind"] != "DaemonSet" || !object["apiVersion"].as_str().unwrap_or_default().starts_with("apps/") {
        return;
    }
    let Some(fields) = metadata.as_object_mut() else { return };
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(DAEMON_SET_GENERATION);
        if annotations.is_empty() {
            fields.remove("annotations");
        }
    }
}

/// A list of metadata; `list` is the metadata of the list itself. QUIRK: the real server appends to a list that Go has not made, so that one
/// of no object is `null` (test `an_empty_list_of_metadata_has_null_for_its_items`).
pub fn partial_metadata_list(objects: &[Value], list: &Value, version: &str) -> Value {
    let items: Vec<Value> = objects.iter().map(|object| partial_metadata(object, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list,
        "items": unless_empty(items),
    })
}

/// A Go slice to which nothing was appended is `null`.
pub fn unless_empty(elements: Vec<Value>) -> Option<Vec<Value>> {
    Some(elements).filter(|elements| !elements.is_empty())
}

/// 406: one object was asked for as a list.
pub fn not_a_list(definition: &ResourceDef) -> ApiError {
    ApiError::not_acceptable(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
        go_type(definition, "")
    ))
}

/// 406: a list was asked for as one object.
pub fn a_list(definition: &ResourceDef) -> ApiError {
    ApiError::not_acceptable(format!(
        "you requested PartialObjectMetadata, but the requested object is a list ({})",
        go_type(definition, "List")
    ))
}

/// What the real server calls the type of a kind: clients read it in refusals.
fn go_type(definition: &ResourceDef, suffix: &str) -> String {
    if definition.custom {
        return format!("*unstructured.Unstructured{suffix}");
    }
    let group = match (definition.group.as_str(), definition.kind.as_str()) {
        ("", _) | (_, "Event") => "core",
        (group, _) => group.split('.').next().unwrap_or_default(),
    };
    format!("*{group}.{}{suffix}", definition.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_of_metadata_has_null_for_its_items() {
        let metadata = json!({"resourceVersion": "7"});
        for version in ["v1", "v1beta1"] {
            let list = partial_metadata_list(&[], &metadata, version);
            assert_eq!(list["items"], Value::Null, "{version}");
            assert!(list.as_object().is_some_and(|list| list.contains_key("items")), "{version}");
            let list = partial_metadata_list(&[json!({"metadata": {"name": "a"}})], &metadata, version);
            assert_eq!(list["items"][0]["metadata"]["name"], "a", "{version}");
        }
    }
}
