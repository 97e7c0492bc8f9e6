//! JSON as Go reads and writes it.
//!
//! Users write JSON inside strings: the keys of ConfigMaps, annotations. Programs written in Go decode them with
//! `encoding/json`, and objects in clusters rely on its rules: keys match whatever their case, of equal keys the last
//! wins, `null` means unset, unknown keys are ignored, absent fields have their zero value, and errors have Go's words.

mod decode;
mod error;
mod inline;
mod merge;
mod parse;
mod write;

pub use decode::{Names, from_str, from_str_named};
pub use error::DecodeError;
pub use inline::Inline;
pub use merge::{merge, merge_values};
pub use parse::{SyntaxError, check};
pub use write::{float_text, to_string};

/// Why a text could not be decoded: in Go's words where it is no JSON, else [without the position](without_position).
pub fn reason(text: &str, error: &serde_json::Error) -> String {
    check(text).map_or_else(|syntax| syntax.to_string(), |()| without_position(error))
}

/// A decode error without the position, which means nothing to users who wrote YAML.
pub fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_owned()
}
