//! JSON as CEL sees it: names escaped, formats as their own types, by the schema.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{Context, Value as CelValue, objects::Key, objects::Map as CelMap};
use serde_json::Value;

use crate::{AdditionalProperties, Schema, cel_name::escape};

/// Converts a value. `context` has the functions that read times.
pub(super) fn of(value: &Value, schema: Option<&Schema>, context: &Context<'_>) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => {
            let wants_float = schema.is_some_and(|schema| schema.type_ == Some(crate::SchemaType::Number));
            match number.as_i64().filter(|_| !wants_float) {
                Some(whole) => CelValue::Int(whole),
                None => match (number.as_f64(), schema.and_then(|schema| schema.type_)) {
                    // A whole number may be written with a fraction.
                    (Some(float), Some(crate::SchemaType::Integer)) => CelValue::Int(float as i64),
                    (float, _) => CelValue::Float(float.unwrap_or(f64::NAN)),
                },
            }
        }
        Value::String(text) => of_text(text, schema.and_then(|schema| schema.format.as_deref()), context),
        Value::Array(items) => {
            let item_schema = schema.and_then(|schema| schema.items.as_deref());
            CelValue::List(Arc::new(items.iter().map(|item| of(item, item_schema, context)).collect()))
        }
        Value::Object(fields) => {
            let entries: HashMap<Key, CelValue> = fields
                .iter()
                .filter_map(|(name, field)| {
                    let declared = schema.and_then(|schema| schema.properties.get(name));
                    let values = match schema.and_then(|schema| schema.additional_properties.as_ref()) {
                        Some(AdditionalProperties::Schema(values)) => Some(&**values),
                        _ => None,
                    };
                    // The keys of a map are data; the names of fields are written in CEL and must be legal there.
                    let key = if declared.is_none() && values.is_some() { name.clone() } else { escape(name)? };
                    Some((Key::String(Arc::new(key)), of(field, declared.or(values), context)))
                })
                .collect();
            CelValue::Map(CelMap { map: Arc::new(entries) })
        }
    }
}

/// Converts a value of which no schema is known: names stay as they are.
pub(super) fn untyped(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => CelValue::Int(whole),
            None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(untyped).collect())),
        Value::Object(fields) => {
            let entries: HashMap<Key, CelValue> =
                fields.iter().map(|(name, field)| (Key::String(Arc::new(name.clone())), untyped(field))).collect();
            CelValue::Map(CelMap { map: Arc::new(entries) })
        }
    }
}

/// What a function makes of a text; none where it cannot read it.
pub(super) fn call(function: &str, text: &str, context: &Context<'_>) -> Option<CelValue> {
    let mut scope = context.new_inner_scope();
    scope.add_variable_from_value("text", text);
    let call = kube_cel::cel::parser::Parser::new().parse(&format!("{function}(text)")).ok()?;
    CelValue::resolve(&call, &scope).ok()
}

fn of_text(text: &str, format: Option<&str>, context: &Context<'_>) -> CelValue {
    let plain = || CelValue::String(Arc::new(text.to_owned()));
    let read = |function: &str, text: &str| call(function, text, context);
    match format {
        Some("date-time") => read("timestamp", text).unwrap_or_else(plain),
        Some("date") => read("timestamp", &format!("{text}T00:00:00Z")).unwrap_or_else(plain),
        Some("duration") => read("duration", text).unwrap_or_else(plain),
        Some("byte") => {
            let decoded = read("base64.decode", text);
            decoded.unwrap_or_else(plain)
        }
        _ => plain(),
    }
}
