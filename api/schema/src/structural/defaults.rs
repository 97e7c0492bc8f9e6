//! Defaulting, and the fate of `null` where the schema does not allow it.

use serde_json::Value;

use crate::{AdditionalProperties, Schema};

/// Fills in the defaults of a schema.
///
/// A field that is absent, or `null` without being nullable, takes its default. Defaults below a field that is absent
/// and has none itself do not appear.
pub fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field_schema) in &schema.properties {
                let Some(default) = &field_schema.default else { continue };
                match fields.get(name) {
                    Some(present) if !is_needless_null(field_schema, present) => {}
                    _ => {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(field_schema) = schema.properties.get(name) {
                    apply(field_schema, field);
                } else if let Some(AdditionalProperties::Schema(values)) = &schema.additional_properties {
                    take_default(values, field);
                    apply(values, field);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = schema.items.as_deref() else { return };
            for item in items {
                take_default(item_schema, item);
                apply(item_schema, item);
            }
        }
        _ => {}
    }
}

/// Drops fields and map entries that are `null` although their schema neither allows it nor has a default.
///
/// Items of lists stay: a list keeps its length, and validation refuses the `null`.
pub fn drop_needless_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                field_schema(schema, name).is_none_or(|field_schema| !is_needless_null(field_schema, field))
            });
            for (name, field) in fields.iter_mut() {
                if let Some(field_schema) = field_schema(schema, name) {
                    drop_needless_nulls(field_schema, field);
                }
            }
        }
        Value::Array(items) => {
            let Some(item_schema) = schema.items.as_deref() else { return };
            for item in items {
                drop_needless_nulls(item_schema, item);
            }
        }
        _ => {}
    }
}

fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema.properties.get(name).or(match &schema.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some(values),
        _ => None,
    })
}

fn is_needless_null(schema: &Schema, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

fn take_default(schema: &Schema, value: &mut Value) {
    if is_needless_null(schema, value)
        && let Some(default) = &schema.default
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_and_null_fields_take_their_default() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "a": {"type": "integer", "default": 1},
            "nullable": {"type": "integer", "default": 1, "nullable": true},
            "plain": {"type": "integer"},
            "deep": {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}},
            "filled": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}},
            "list": {"type": "array", "items": {"type": "integer", "default": 7}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}},
        }}))
        .unwrap();
        let mut value =
            json!({"a": null, "nullable": null, "plain": null, "list": [null, 1], "map": {"k": {}, "n": null}});
        apply(&schema, &mut value);
        drop_needless_nulls(&schema, &mut value);
        let expected =
            json!({"a": 1, "nullable": null, "filled": {"x": "y"}, "list": [7, 1], "map": {"k": {"x": "y"}}});
        assert_eq!(value, expected);
        apply(&schema, &mut value);
        assert_eq!(value, expected, "defaulting twice changes nothing");
    }
}
