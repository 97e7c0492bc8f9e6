//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Applies a merge patch: objects are merged, `null` deletes, everything else replaces.
///
/// QUIRK: as in the API server, a `null` never enters the document with a new value, not even inside an array
/// (`nulls_of_a_patch_never_enter_the_document`); in an array that takes the place of an object it does.
pub fn apply(mut document: Value, patch: &Value) -> Value {
    if lists_null(patch) {
        let patch = without_new_nulls(Some(&document), patch);
        json_patch::merge(&mut document, &patch);
    } else {
        json_patch::merge(&mut document, patch);
    }
    document
}

/// Whether there is a `null` in an array, or in an object in an array: elsewhere it deletes.
fn lists_null(patch: &Value) -> bool {
    fn has_null(value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().any(has_null),
            Value::Object(fields) => fields.values().any(has_null),
            _ => false,
        }
    }
    match patch {
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(lists_null),
        _ => false,
    }
}

/// The patch without the nulls that the API server drops from arrays.
fn without_new_nulls(current: Option<&Value>, patch: &Value) -> Value {
    match (current, patch) {
        (_, Value::Object(changes)) => changes
            .iter()
            .map(|(name, change)| (name.clone(), without_new_nulls(current.and_then(|value| value.get(name)), change)))
            .collect(),
        (Some(Value::Object(_)), replacement) => replacement.clone(),
        (_, replacement) => without_nulls(replacement),
    }
}

/// The merge patch that turns `old` into `new`; none when they are equal. What `new` lacks is deleted by an explicit `null`.
///
/// A `null` in an object counts as absent, in both documents; a `null` of an array cannot be expressed and is left out.
///
/// ```
/// use koord_schema::patch::merge::diff;
/// use serde_json::json;
/// let patch = diff(&json!({"a": 1, "b": {"c": 2, "d": 3}}), &json!({"a": 1, "b": {"c": 9}}));
/// assert_eq!(patch, Some(json!({"b": {"c": 9, "d": null}})));
/// ```
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => diff_objects(old, new).map(Value::Object),
        _ => (old != new).then(|| without_nulls(new)),
    }
}

fn diff_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    for (name, current) in old.iter().filter(|(_, current)| !current.is_null()) {
        let change = match new.get(name) {
            None | Some(Value::Null) => Some(Value::Null),
            Some(value) => diff(current, value),
        };
        if let Some(change) = change {
            patch.insert(name.clone(), change);
        }
    }
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        if old.get(name).is_none_or(Value::is_null) {
            patch.insert(name.clone(), without_nulls(value));
        }
    }
    (!patch.is_empty()).then_some(patch)
}

/// A copy in which no object has a `null` field and no array a `null` item.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, field)| !field.is_null())
                .map(|(name, field)| (name.clone(), without_nulls(field)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().filter(|item| !item.is_null()).map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches() {
        let document = json!({"data": {"a": "1", "b": "2"}, "list": [1, 2], "n": 1});
        let table = [
            (json!({}), document.clone()),
            (json!({"data": {"b": null, "c": "3"}}), json!({"data": {"a": "1", "c": "3"}, "list": [1, 2], "n": 1})),
            (json!({"data": {"zz": null}}), document.clone()),
            (json!({"data": null, "list": [3]}), json!({"list": [3], "n": 1})),
            (
                json!({"n": {"deep": {"x": null, "y": 1}}}),
                json!({"data": {"a": "1", "b": "2"}, "list": [1, 2], "n": {"deep": {"y": 1}}}),
            ),
        ];
        for (patch, expected) in table {
            assert_eq!(apply(document.clone(), &patch), expected, "{patch}");
        }
    }

    #[test]
    fn nulls_of_a_patch_never_enter_the_document() {
        assert_eq!(apply(json!({"a": [1]}), &json!({"a": [null, {"b": null, "c": 1}]})), json!({"a": [{"c": 1}]}));
    }

    #[test]
    fn an_array_that_replaces_an_object_keeps_its_nulls() {
        assert_eq!(
            apply(json!({"a": {"b": 1}}), &json!({"a": [null, {"c": null}]})),
            json!({"a": [null, {"c": null}]})
        );
    }

    #[test]
    fn differences_delete_by_null() {
        let old = json!({"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3, "same": {"x": 1}});
        let new = json!({"a": {"x": 1, "z": 2}, "b": [2], "same": {"x": 1}});
        assert_eq!(diff(&old, &new), Some(json!({"a": {"y": null, "z": 2}, "b": [2], "c": null})));
        assert_eq!(diff(&old, &old), None);
    }

    #[test]
    fn a_null_is_as_good_as_absent() {
        let table = [
            (json!({"a": null}), json!({}), None),
            (json!({}), json!({"a": null}), None),
            (json!({"a": 1}), json!({"a": null}), Some(json!({"a": null}))),
            (json!({"a": null}), json!({"a": {"b": 1, "c": null}}), Some(json!({"a": {"b": 1}}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
        ];
        for (old, new, patch) in table {
            assert_eq!(diff(&old, &new), patch, "{old} to {new}");
        }
    }
}
