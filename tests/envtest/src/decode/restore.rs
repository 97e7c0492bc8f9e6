//! The mistakes in a value that a strategic merge patch makes, as kube-apiserver words them: it restores the struct from
//! plain maps, and so does not speak of JSON.

use serde_json::Value;

use crate::builtins::{BuiltinType, Shape};

/// The first value that does not fit the type; none when all fit, or when its type has a decoder of its own.
pub(super) fn mistake(node: &BuiltinType, value: &Value) -> Option<String> {
    let resolved = node.resolve();
    let kind = kind(value);
    match (&resolved.shape, value) {
        (_, Value::Null)
        | (Shape::Any | Shape::Named(_) | Shape::Quantity | Shape::IntOrString, _)
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Integer | Shape::Number, Value::Number(_)) => None,
        (Shape::Object(fields), Value::Object(map)) => {
            fields.iter().find_map(|(name, field)| mistake(field, map.get(name.as_ref())?))
        }
        (Shape::Object(_), _) => Some(format!("cannot restore struct from: {kind}")),
        (Shape::Map(values), Value::Object(map)) => map.values().find_map(|value| mistake(values, value)),
        (Shape::Map(_), _) => Some(format!("cannot restore map from {kind}")),
        (Shape::List(items), Value::Array(list)) => list.iter().find_map(|item| mistake(items, item)),
        (Shape::List(_), _) => Some(format!("cannot restore slice from {kind}")),
        (Shape::String, _) if resolved.format.as_deref() == Some("byte") => match value {
            Value::String(text) => {
                super::check_base64(text).err().map(|mistake| format!("error decoding from json: {mistake}"))
            }
            _ => Some(format!("cannot restore slice from {kind}")),
        },
        (Shape::String, _) if resolved.format.is_none() => text_mistake(value),
        (Shape::String, _) => None,
        (Shape::Boolean, _) => Some("unrecognized type: bool".to_owned()),
        (Shape::Number, _) => Some("unrecognized type: float64".to_owned()),
        (Shape::Integer, _) => {
            let go = if resolved.format.as_deref() == Some("int32") { "int32" } else { "int64" };
            Some(format!("unrecognized type: {go}"))
        }
    }
}

/// What is wrong with a value that should be text, if it is given.
pub(super) fn text_mistake(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::String(_) => None,
        Value::Number(number) if number.is_i64() => Some("cannot convert int64 to string".to_owned()),
        _ => Some("unrecognized type: string".to_owned()),
    }
}

/// What Go calls a value that was decoded without a type.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "ptr",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decode::typed;

    #[test]
    fn the_first_value_that_does_not_fit_is_named_by_its_type() {
        let pod = typed::kind("", "v1", "Pod").unwrap();
        for (value, wanted) in [
            (json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}), None),
            (json!({"metadata": "x"}), Some("cannot restore struct from: string")),
            (json!({"metadata": {"labels": ["a"]}}), Some("cannot restore map from slice")),
            (json!({"metadata": {"labels": {"a": 1}}}), Some("cannot convert int64 to string")),
            (json!({"spec": {"containers": "x"}}), Some("cannot restore slice from string")),
            (json!({"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}}), Some("unrecognized type: int32")),
            (json!({"spec": {"hostNetwork": "yes"}}), Some("unrecognized type: bool")),
        ] {
            assert_eq!(mistake(pod, &value).as_deref(), wanted, "{value}");
        }
    }
}
