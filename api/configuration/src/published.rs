//! JSON Schemas for editors, pipelines and reference pages: each is complete in itself, says every default that is in force, and writes forms as
//! patterns, since only this crate knows the formats `duration` and `quantity`.

use serde_json::{Map, Value, json};

/// The draft that `schemars` writes.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A duration of at least 0 as Go reads it, such as `90s` or `1h30m`.
const DURATION: &str =
    r"^\+?(0|([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$";

/// An amount of at least 0, such as `500m` or `4Gi`.
const QUANTITY: &str = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$";

/// The schema of a type as it is published for documents of this version and kind: with patterns, and with the values of `complete`, which are in
/// force when nothing is set, as the defaults of its fields. `schema` is that of an object.
pub fn published(mut schema: Value, complete: &Value, api_version: &str, kind: &str) -> Value {
    with_patterns(&mut schema);
    for (key, property) in schema["properties"].as_object_mut().into_iter().flatten() {
        let Some(members) = property.as_object_mut() else { continue };
        let default = complete.get(key).map(without_unset).filter(|value| !is_unset(value));
        match default {
            Some(value) => members.insert("default".to_owned(), value),
            None => members.remove("default"),
        };
    }
    state(&mut schema, api_version, kind);
    schema
}

/// Version and kind are what they must be.
fn state(schema: &mut Value, api_version: &str, kind: &str) {
    schema["$schema"] = DRAFT.into();
    schema["title"] = kind.into();
    let properties = schema["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let stated =
        [("apiVersion", api_version), ("kind", kind)].map(|(key, text)| (key.to_owned(), json!({"const": text})));
    let others = properties.into_iter().filter(|(key, _)| key != "apiVersion" && key != "kind");
    schema["properties"] = stated.into_iter().chain(others).collect::<Map<_, _>>().into();
}

/// Writes forms as patterns, and drops what a type says of fields that are not set: that is not what is in force.
fn with_patterns(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            match keywords.get("format").and_then(Value::as_str) {
                Some("duration") => drop(keywords.insert("pattern".to_owned(), DURATION.into())),
                Some("quantity") => drop(keywords.insert("pattern".to_owned(), QUANTITY.into())),
                _ => {}
            }
            keywords.retain(|keyword, value| match keyword.as_str() {
                "format" => false,
                "default" => !(is_unset(value) || value.as_f64() == Some(0.0) || value.is_object()),
                _ => true,
            });
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    // What stands here by name is a schema, whatever its name is.
                    ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
                        named.values_mut().for_each(with_patterns);
                    }
                    ("default" | "enum" | "const" | "examples", _) => {}
                    (_, value) => with_patterns(value),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(with_patterns),
        _ => {}
    }
}

/// Whether a value only says that nothing is set.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// A value without the fields that are not set.
fn without_unset(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().map(|(key, member)| (key.clone(), without_unset(member)));
            set.filter(|(_, member)| !is_unset(member)).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_named_like_keywords_stay_in_the_schema() {
        let schema = json!({"type": "object", "properties": {
            "default": {"type": "string", "format": "duration", "default": ""},
            "format": {"type": "object", "properties": {"default": {"type": "integer", "format": "int32", "default": 0}}},
        }});
        let published = published(schema, &json!({"default": "5m"}), "example.com/v1", "Example");
        let fields = &published["properties"];
        assert_eq!(fields["default"], json!({"type": "string", "pattern": DURATION, "default": "5m"}));
        assert_eq!(fields["format"]["properties"], json!({"default": {"type": "integer"}}));
    }
}
