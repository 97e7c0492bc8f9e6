//! Values that a schema refuses for their size or word alone, brought to what it allows.
//!
//! For programs that write objects from somebody else's configuration: one number out of range would otherwise keep the
//! whole object from being written.

use std::fmt;

use serde_json::{Number, Value};

use crate::{AdditionalProperties, Schema};

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The field, such as `clusterStrategy.percent` or `blocks[0].weight`.
    pub path: String,
    /// What stood there.
    pub was: Value,
    /// What stands there now; none where the field was taken away.
    pub now: Option<Number>,
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, was, now } = self;
        match now {
            Some(now) => write!(f, "{path}: {was} is out of range; {now} is used instead"),
            None => write!(f, "{path}: {was} is not among the values that are allowed; it is left out"),
        }
    }
}

/// Sets numbers to the bound that they exceed, and takes fields away whose word is not in the enumeration. Items of
/// lists that are such words stay: nothing can be taken from between others.
pub fn bring_within(schema: &Schema, value: &mut Value) -> Vec<Correction> {
    let mut corrections = Vec::new();
    walk(schema, value, "", &mut corrections);
    corrections
}

fn walk(schema: &Schema, value: &mut Value, path: &str, corrections: &mut Vec<Correction>) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let field_schema = match (schema.properties.get(name), &schema.additional_properties) {
                (Some(field_schema), _) => field_schema,
                (None, Some(AdditionalProperties::Schema(values))) => values,
                _ => return true,
            };
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let allowed = field_schema.enum_.is_empty() || field.is_null() || field_schema.enum_.contains(field);
            if allowed {
                walk(field_schema, field, &path, corrections);
            } else {
                corrections.push(Correction { path, was: field.clone(), now: None });
            }
            allowed
        }),
        Value::Array(items) => {
            let Some(item_schema) = schema.items.as_deref() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                walk(item_schema, item, &format!("{path}[{index}]"), corrections);
            }
        }
        Value::Number(number) => {
            if let Some(bound) = exceeded(schema, number) {
                corrections.push(Correction { path: path.to_owned(), was: value.clone(), now: Some(bound.clone()) });
                *value = Value::Number(bound.clone());
            }
        }
        _ => {}
    }
}

/// The bound that a number exceeds. What an excluded bound allows next to it cannot be known.
fn exceeded<'s>(schema: &'s Schema, number: &Number) -> Option<&'s Number> {
    let exceeds = |larger: &Number, smaller: &Number| match (larger.as_i64(), smaller.as_i64()) {
        (Some(larger), Some(smaller)) => larger > smaller,
        _ => larger.as_f64() > smaller.as_f64(),
    };
    let minimum = schema.minimum.as_ref().filter(|minimum| !schema.exclusive_minimum && exceeds(minimum, number));
    let maximum = schema.maximum.as_ref().filter(|maximum| !schema.exclusive_maximum && exceeds(number, maximum));
    minimum.or(maximum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_go_to_their_bounds_and_unknown_words_away() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "percent": {"type": "integer", "minimum": 0, "maximum": 100},
            "word": {"type": "string", "enum": ["a", "b"]},
            "list": {"type": "array", "items": {"type": "object", "properties": {"least": {"type": "number", "minimum": 1.5}}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 1}},
        }}))
        .unwrap();
        let mut value =
            json!({"percent": 150, "word": "c", "list": [{"least": 2}, {"least": -1}], "map": {"x": 7}, "other": 1e9});
        let corrections = bring_within(&schema, &mut value);
        assert_eq!(
            value,
            json!({"percent": 100, "list": [{"least": 2}, {"least": 1.5}], "map": {"x": 1}, "other": 1e9})
        );
        let mut texts: Vec<String> = corrections.iter().map(ToString::to_string).collect();
        texts.sort();
        assert_eq!(
            texts,
            [
                "list[1].least: -1 is out of range; 1.5 is used instead",
                "map.x: 7 is out of range; 1 is used instead",
                "percent: 150 is out of range; 100 is used instead",
                r#"word: "c" is not among the values that are allowed; it is left out"#,
            ]
        );
        assert_eq!(bring_within(&schema, &mut value), []);
        assert!(crate::structural::validate::validate(&schema, &value).is_empty());
    }
}
