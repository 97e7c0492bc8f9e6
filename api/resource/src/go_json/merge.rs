//! Laying one configuration over another, as a program in Go does that writes the new one as JSON and decodes it into the old.

use koord_schema::Schema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// `new` laid over `old`; `schema` is that of both.
///
/// What `new` does not write stays. Structs merge field by field, maps key by key with whole values, and a list that
/// is not empty goes item by item into the old items of the same index, which then give what the new items leave open.
pub fn merge<T: Serialize + DeserializeOwned>(old: &T, new: &T, schema: &Schema) -> serde_json::Result<T> {
    let mut merged = serde_json::to_value(old)?;
    merge_values(&mut merged, serde_json::to_value(new)?, schema);
    serde_json::from_value(merged)
}

/// [`merge`] on JSON values.
pub fn merge_values(old: &mut Value, new: Value, schema: &Schema) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                match (old.get_mut(&key), schema.properties.get(&key)) {
                    (Some(field), Some(schema)) => merge_values(field, value, schema),
                    _ => drop(old.insert(key, value)),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if !new.is_empty() => {
            let any = Schema::default();
            let schema = schema.items.as_deref().unwrap_or(&any);
            old.truncate(new.len());
            for (index, item) in new.into_iter().enumerate() {
                match old.get_mut(index) {
                    Some(old) => merge_values(old, item, schema),
                    None => old.push(item),
                }
            }
        }
        (_, Value::Null) | (Value::Array(_), Value::Array(_)) => {}
        (old, new) => *old = new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        serde_json::from_value(json!({"type": "object", "properties": {
            "percent": {"type": "integer"},
            "class": {"type": "object", "properties": {"enable": {"type": "boolean"}, "share": {"type": "integer"}}},
            "features": {"type": "object", "additionalProperties": {"type": "object"}},
            "blocks": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "type": {"type": "string"}}}},
            "names": {"type": "array", "items": {"type": "string"}},
        }}))
        .unwrap()
    }

    fn merged(old: Value, new: Value) -> Value {
        let mut merged = old;
        merge_values(&mut merged, new, &schema());
        merged
    }

    #[test]
    fn what_is_absent_or_null_stays() {
        let old = json!({"percent": 1, "class": {"enable": true, "share": 2}});
        assert_eq!(
            merged(old, json!({"percent": null, "class": {"share": 3}})),
            json!({"percent": 1, "class": {"enable": true, "share": 3}})
        );
    }

    #[test]
    fn maps_merge_by_key_with_whole_values() {
        let old = json!({"features": {"a": {"x": 1}, "b": {}}});
        let new = json!({"features": {"a": {"y": 2}}});
        assert_eq!(merged(old, new), json!({"features": {"a": {"y": 2}, "b": {}}}));
    }

    /// QUIRK: an item inherits from the old item of the same index (spec/manager.md 2.2).
    #[test]
    fn lists_merge_by_index_and_empty_ones_change_nothing() {
        let old = json!({"blocks": [{"name": "a", "type": "device"}, {"name": "b"}], "names": ["x"]});
        assert_eq!(
            merged(old, json!({"blocks": [{"name": "z"}], "names": []})),
            json!({"blocks": [{"name": "z", "type": "device"}], "names": ["x"]})
        );
    }
}
