//! YAML bodies, in and out.

use serde_json::Value;

/// Reads one YAML document.
pub fn parse(text: &str) -> Result<Value, serde_saphyr::Error> {
    serde_saphyr::from_str(text)
}

/// Writes an object with sorted keys, as kubectl and the API server do.
pub fn to_text(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
}
