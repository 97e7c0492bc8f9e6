//! How deep JSON values may nest.
//!
//! Decoding, comparing, pruning, validating, patching, owning and dropping a value all recurse into it, so the depth of a
//! value bounds the depth of the stack.

use serde_json::Value;

/// Deepest nesting of an object. A list or a watch event adds a few levels, and `serde_json` reads no more than 127.
pub const DEPTH_MAX: usize = 120;

/// Levels of objects and arrays in a value: 0 for a scalar.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
