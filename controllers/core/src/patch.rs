//! JSON merge patches (RFC 7386) between what is and what shall be.

use serde_json::{Map, Value};

/// The merge patch that turns `from` into `to`; none when they are equal. What `to` lacks becomes an explicit null.
///
/// ```
/// use koord_core::patch::merge_patch;
/// use serde_json::json;
/// let patch = merge_patch(&json!({"a": 1, "b": {"c": 2, "d": 3}}), &json!({"a": 1, "b": {"c": 9}}));
/// assert_eq!(patch, Some(json!({"b": {"c": 9, "d": null}})));
/// ```
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    match (from, to) {
        (Value::Object(from), Value::Object(to)) => merge_objects(from, to).map(Value::Object),
        _ => (from != to).then(|| to.clone()),
    }
}

fn merge_objects(from: &Map<String, Value>, to: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    for (key, old) in from {
        match to.get(key) {
            None if old.is_null() => {}
            None => {
                patch.insert(key.clone(), Value::Null);
            }
            Some(new) => {
                if let Some(change) = merge_patch(old, new) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    for (key, new) in to {
        if !from.contains_key(key) && !new.is_null() {
            patch.insert(key.clone(), new.clone());
        }
    }
    (!patch.is_empty()).then_some(patch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// RFC 7386, section 2.
    fn apply(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut target = if let Value::Object(target) = target { target } else { Map::new() };
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                let old = target.remove(key).unwrap_or(Value::Null);
                target.insert(key.clone(), apply(old, value));
            }
        }
        Value::Object(target)
    }

    /// Objects as we write them: a merge patch cannot express a null inside an object.
    fn without_nulls() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_patch_leads_from_what_is_to_what_shall_be(
            from in prop::collection::btree_map("[a-d]", without_nulls(), 0..4),
            to in prop::collection::btree_map("[a-d]", without_nulls(), 0..4),
        ) {
            let object = |map: std::collections::BTreeMap<String, Value>| Value::Object(map.into_iter().collect());
            let (from, to) = (object(from), object(to));
            match merge_patch(&from, &to) {
                None => prop_assert_eq!(from, to),
                Some(patch) => {
                    prop_assert_ne!(&from, &to);
                    prop_assert_eq!(apply(from, &patch), to);
                }
            }
        }
    }

    #[test]
    fn lists_are_replaced_whole() {
        assert_eq!(merge_patch(&json!({"a": [1, 2]}), &json!({"a": [1]})), Some(json!({"a": [1]})));
    }
}
