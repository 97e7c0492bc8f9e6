//! YAML bodies, in and out.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Reads one YAML document.
pub fn parse(text: &str) -> Result<Value, serde_saphyr::Error> {
    serde_saphyr::from_str(text)
}

/// Reads every document of a file; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Writes an object with sorted keys, as kubectl and the API server do.
pub fn to_text(value: &Value) -> String {
    let text = serde_saphyr::to_string(value).unwrap_or_default();
    match &*FIELD_KEYS {
        Some(keys) => keys.replace_all(&text, "$1$2:").into_owned(),
        None => text,
    }
}

/// Keys of `fieldsV1`: the library quotes them, Go's YAML does not.
static FIELD_KEYS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?m)^( *(?:- )?)"(\.|f:[A-Za-z0-9_./-]+)":"#).ok());
