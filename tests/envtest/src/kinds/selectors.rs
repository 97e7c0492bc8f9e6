//! Label selectors that stand inside objects.

use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use crate::selector;

/// Checks a selector; returns whether anything can be selected by it.
pub(super) fn check(selector: &Value, at: &Path<'_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    koord_schema::object_meta::validate_labels(&selector["matchLabels"], &at.child("matchLabels"), errors);
    let list_at = at.child("matchExpressions");
    for (index, term) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let at = list_at.index(index);
        let values = term["values"].as_array().map(Vec::as_slice).unwrap_or_default();
        let operator = term["operator"].as_str().unwrap_or_default();
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&at.child("values"), message);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid(&at.child("operator"), operator, "not a valid selector operator"),
        }
        let key = term["key"].as_str().unwrap_or_default();
        for message in names::qualified_name(key) {
            errors.invalid(&at.child("key"), key, message);
        }
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            for message in names::label_value(value) {
                errors.invalid(&at.child("values").index(index), value, message);
            }
        }
    }
    errors.len() == before
}

/// Whether a selector names nothing, and so selects everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && selector["matchExpressions"].as_array().is_none_or(Vec::is_empty)
}

/// Whether labels are selected; an absent selector selects nothing.
pub(super) fn matches(selector: &Value, labels: &Value) -> bool {
    selector::of_object(selector).is_some_and(|selector| selector.selects(|key| labels.get(key)?.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_part_is_checked() {
        let mut errors = Errors::new();
        let selector = json!({"matchLabels": {"a b": "c"}, "matchExpressions": [
            {"key": "a", "operator": "In"}, {"key": "a", "operator": "Exists", "values": ["x"]}, {"key": "-", "operator": "Bad"},
        ]});
        assert!(!check(&selector, &Path::root("selector"), &mut errors));
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "selector.matchLabels",
                "selector.matchExpressions[0].values",
                "selector.matchExpressions[1].values",
                "selector.matchExpressions[2].operator",
                "selector.matchExpressions[2].key"
            ]
        );
    }

    #[test]
    fn nothing_and_everything() {
        assert!(!matches(&Value::Null, &json!({"a": "b"})));
        assert!(is_empty(&json!({})) && matches(&json!({}), &Value::Null));
    }
}
