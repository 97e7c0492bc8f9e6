//! YAML as kubectl and controller-gen print it: block style, sorted keys, lists at the level of their key.

use serde::Serialize;
use serde_json::Value;

/// One document, without the `---` before it.
pub fn document(value: &impl Serialize) -> Result<String, YamlError> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(|error| YamlError(error.to_string()))
}

/// Several documents, each after a `---`.
pub fn stream<'a>(values: impl IntoIterator<Item = &'a Value>) -> Result<String, YamlError> {
    let mut text = String::new();
    for value in values {
        text.push_str("---\n");
        text.push_str(&document(value)?);
    }
    Ok(text)
}

/// A value that cannot be printed.
#[derive(Debug, thiserror::Error)]
#[error("cannot be written as YAML: {0}")]
pub struct YamlError(String);
