//! Other shapes of objects: metadata alone, and what the rows of a table carry.

use serde_json::{Map, Value, json};

use crate::{request::ApiRequest, status::ApiError};

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
