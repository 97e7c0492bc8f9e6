//! From request bodies to objects.

use serde_json::Value;

use crate::{options::FieldValidation, registry::ResourceDef, request::ApiRequest, status::ApiError};

/// A decoded object and what the client should be told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object, with `apiVersion` and `kind`.
    pub object: Value,
    /// Unknown and duplicate fields.
    pub warnings: Vec<String>,
}

/// Reads the body of a create or update.
pub fn object(
    request: &ApiRequest,
    definition: &ResourceDef,
    _validation: FieldValidation,
) -> Result<Decoded, ApiError> {
    let mut object = body(request)?;
    let kind = &definition.kind;
    if !object.is_object() {
        return Err(ApiError::bad_request(format!("the object provided is unrecognized (must be of type {kind})")));
    }
    let (given_version, given_kind) = (text(&object, "apiVersion"), text(&object, "kind"));
    if (!given_kind.is_empty() && given_kind != *kind)
        || (!given_version.is_empty() && !definition.is_api_version(&given_version))
    {
        let version = if given_version.is_empty() { definition.api_version() } else { given_version };
        return Err(ApiError::bad_request(format!(
            "{given_kind} in version \"{version}\" cannot be handled as a {kind}"
        )));
    }
    object["apiVersion"] = Value::String(definition.api_version());
    object["kind"] = Value::String(kind.clone());
    Ok(Decoded { object, warnings: Vec::new() })
}

/// Checks an object that a patch made; gives warnings.
pub fn patched(
    _object: &mut Value,
    _definition: &ResourceDef,
    _validation: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    Ok(Vec::new())
}

/// Reads the options in the body of a delete.
pub fn delete_options(request: &ApiRequest) -> Result<Value, ApiError> {
    body(request)
}

fn body(request: &ApiRequest) -> Result<Value, ApiError> {
    if request.content_type.starts_with("application/yaml") {
        let text = String::from_utf8_lossy(&request.body);
        return crate::yaml::parse(&text).map_err(|error| ApiError::bad_request(error.to_string()));
    }
    serde_json::from_slice(&request.body).map_err(|error| ApiError::bad_request(error.to_string()))
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}
