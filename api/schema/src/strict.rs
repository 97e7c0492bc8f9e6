//! `fieldValidation`: fields that occur twice, and fields that the type does not know.
//!
//! Duplicates are visible only in the text; a parsed object has kept the last one.

use std::{collections::HashMap, fmt, fmt::Write};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::typed::{Shape, TypeNode};

/// Most errors of one document; the API server stops there as well.
pub const ERRORS_MAX: usize = 100;

/// What is wrong with the fields of JSON text, in document order: `unknown field "spec.foo"` where the type does not
/// know it, `duplicate field "spec.a"` where it occurs again; each once. Without a type, duplicates only.
///
/// Text that is no JSON gives what stands before the mistake: the caller learns of the mistake when it parses.
pub fn decoding_errors<N: TypeNode>(json: &[u8], node: Option<&N>) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = String::new();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // An error ends the search; what was found before stays true.
    let _ = Walk { node: node.cloned(), path: &mut path, found: &mut found }.deserialize(&mut deserializer);
    found
}

/// The duplicates alone, as [`decoding_errors`] words them.
pub fn duplicates(json: &[u8]) -> Vec<String> {
    decoding_errors::<crate::typed::SchemaNode<'_>>(json, None)
}

/// The paths of an object's fields that a type does not know, sorted by field.
pub fn unknown_fields<N: TypeNode>(object: &Value, node: &N) -> Vec<String> {
    let mut found = Vec::new();
    find_unknown(object, node, &mut String::new(), &mut found);
    found
}

/// `unknown field "spec.foo"`
pub fn unknown_text(path: &str) -> String {
    format!("unknown field {}", crate::go_text::quote(path))
}

/// `duplicate field "spec.foo"`
pub fn duplicate_text(path: &str) -> String {
    format!("duplicate field {}", crate::go_text::quote(path))
}

fn with_field<T>(path: &mut String, name: &str, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    let result = visit(path);
    path.truncate(length);
    result
}

fn with_item<T>(path: &mut String, index: usize, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    // Writing to a string cannot fail.
    let _ = write!(path, "[{index}]");
    let result = visit(path);
    path.truncate(length);
    result
}

fn find_unknown<N: TypeNode>(value: &Value, node: &N, path: &mut String, found: &mut Vec<String>) {
    if found.len() >= ERRORS_MAX {
        return;
    }
    match value {
        Value::Object(fields) if matches!(node.shape(), Shape::Object | Shape::AtomicObject) => {
            for (name, field) in fields {
                with_field(path, name, |path| match node.field(name) {
                    Some(field_node) => find_unknown(field, &field_node, path, found),
                    None => found.push(path.clone()),
                });
            }
        }
        Value::Array(items) => {
            let Some(item_node) = node.item() else { return };
            for (index, item) in items.iter().enumerate() {
                with_item(path, index, |path| find_unknown(item, &item_node, path, found));
            }
        }
        _ => {}
    }
}

struct Walk<'a, N> {
    node: Option<N>,
    path: &'a mut String,
    found: &'a mut Vec<String>,
}

impl<'de, N: TypeNode> DeserializeSeed<'de> for Walk<'_, N> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, N: TypeNode> Visitor<'de> for Walk<'_, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Walk { node, path, found } = self;
        let node = node.filter(|node| matches!(node.shape(), Shape::Object | Shape::AtomicObject));
        let mut times: HashMap<String, usize> = HashMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let field = node.as_ref().and_then(|node| node.field(&name));
            let is_unknown = node.is_some() && field.is_none();
            with_field(path, &name, |path| {
                let seen = times.entry(name.clone()).or_default();
                *seen += 1;
                if found.len() < ERRORS_MAX {
                    match *seen {
                        1 if is_unknown => found.push(unknown_text(path)),
                        2 if !is_unknown => found.push(duplicate_text(path)),
                        _ => {}
                    }
                }
                map.next_value_seed(Walk { node: field, path, found })
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Walk { node, path, found } = self;
        let item = node.and_then(|node| node.item());
        for index in 0usize.. {
            let more = with_item(path, index, |path| {
                seq.next_element_seed(Walk { node: item.clone(), path, found: &mut *found })
            })?;
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Schema, typed::SchemaNode};

    #[test]
    fn duplicates_are_found_in_the_text() {
        let text = br#"{"a":1,"spec":{"a":"1","a":"2","a":"3","l":[{"x":1},{"x":1,"x":{"y":1,"y":2}}]},"a":2}"#;
        let expected = ["spec.a", "spec.l[1].x", "spec.l[1].x.y", "a"].map(duplicate_text);
        assert_eq!(duplicates(text), expected);
        assert!(duplicates(b"{\"a\":1,").is_empty() && duplicates(b"nope").is_empty());
    }

    #[test]
    fn errors_follow_the_document() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "data": {"type": "object", "additionalProperties": {"type": "string"}}}}))
        .unwrap();
        let text = br#"{"metadata":{"name":"a","foo":1},"data":{"k":"1","k":"2"},"bar":{"x":1,"x":2}}"#;
        let found = decoding_errors(text, Some(&SchemaNode::of(&schema)));
        assert_eq!(
            found[..3],
            [r#"unknown field "metadata.foo""#, r#"duplicate field "data.k""#, r#"unknown field "bar""#]
        );
    }

    #[test]
    fn unknown_fields_are_found_by_type() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"i": {"type": "integer"}}}}}}))
        .unwrap();
        let object = json!({"bar": {}, "data": {"any": "x"}, "list": [{"i": 1, "j": 2}]});
        let found = unknown_fields(&object, &SchemaNode::of(&schema));
        assert_eq!(found, ["bar", "list[0].j"]);
        assert_eq!(unknown_text(&found[0]), r#"unknown field "bar""#);
        assert_eq!(duplicate_text("spec.a"), r#"duplicate field "spec.a""#);
    }
}
