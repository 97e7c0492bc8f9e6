//! The promises of `x-kubernetes-list-type`: items of a set are unique, and so are the keys of a map.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    AdditionalProperties, ListType, Schema,
    field::{Errors, Path},
};

/// Finds the duplicates in all set and map lists of an object.
pub fn validate(schema: &Schema, object: &Value) -> Errors {
    let mut errors = Errors::new();
    visit(schema, object, &Path::root(""), &mut errors);
    errors
}

fn visit(schema: &Schema, value: &Value, at: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(field_schema) = schema.properties.get(name) {
                    visit(field_schema, field, &at.child(name), errors);
                } else if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
                    visit(values, field, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => report_repeated(items.iter().cloned(), at, errors),
                Some(ListType::Map) => validate_keys(schema, items, at, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(item_schema) = schema.items.as_deref() else { return };
            for (index, item) in items.iter().enumerate() {
                visit(item_schema, item, &at.index(index), errors);
            }
        }
        _ => {}
    }
}

fn validate_keys(schema: &Schema, items: &[Value], at: &Path<'_>, errors: &mut Errors) {
    if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        errors.invalid(&at.index(index), &items[index], "must be an object for an array of list-type map");
        return;
    }
    let keys = items.iter().map(|item| {
        let key: Map<String, Value> = schema
            .list_map_keys
            .iter()
            .filter_map(|name| item.get(name).map(|value| (name.clone(), value.clone())))
            .collect();
        Value::Object(key)
    });
    report_repeated(keys, at, errors);
}

/// Reports each repeated value once, at its second place.
fn report_repeated(values: impl Iterator<Item = Value>, at: &Path<'_>, errors: &mut Errors) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (index, value) in values.enumerate() {
        let seen = times.entry(value.to_string()).or_default();
        *seen += 1;
        if *seen == 2 {
            errors.duplicate(&at.index(index), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_reported_at_their_second_place() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
            "two": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        }}))
        .unwrap();
        let found = |object: Value| validate(&schema, &object).to_string();
        assert_eq!(found(json!({"map": [{"k": "a", "v": 1}, {"k": "a"}]})), r#"map[1]: Duplicate value: {"k":"a"}"#);
        assert_eq!(found(json!({"map": [{}, {}, {}]})), "map[1]: Duplicate value: {}");
        assert_eq!(
            found(json!({"two": [{"a": "x", "b": 1}, {"a": "x", "b": 1}, {"a": "x"}]})),
            r#"two[1]: Duplicate value: {"a":"x","b":1}"#
        );
        assert_eq!(found(json!({"set": ["x", "y", "x"]})), r#"set[2]: Duplicate value: "x""#);
        assert_eq!(
            found(json!({"map": ["x"]})),
            r#"map[0]: Invalid value: "x": must be an object for an array of list-type map"#
        );
    }
}
