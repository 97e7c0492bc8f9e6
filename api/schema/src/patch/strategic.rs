//! Strategic merge patch: a merge patch in which the type says how lists are merged, and directives say the rest.
//!
//! | directive | effect |
//! |---|---|
//! | `$patch: replace` in an object | the object is replaced by the rest of the patch |
//! | `$patch: delete` in an object | the object becomes empty |
//! | `$patch: delete` in a list item | the item with the same merge key goes |
//! | `$patch: replace` as a list item | the list is replaced by the other items |
//! | `$retainKeys: [..]` | fields that are not listed go |
//! | `$deleteFromPrimitiveList/NAME: [..]` | these values leave the list NAME |
//! | `$setElementOrder/NAME: [..]` | the list NAME takes this order |

mod lists;

use std::collections::HashSet;

use lists::{MergeKey, in_order, merge_lists};
use serde_json::{Map, Value};

use super::PatchError;
use crate::{go_text, typed::TypeNode};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object of the type that `node` describes.
pub fn apply<N: TypeNode>(document: Value, patch: &Value, node: &N) -> Result<Value, PatchError> {
    match (document, patch) {
        (Value::Object(original), Value::Object(patch)) => {
            Ok(Value::Object(merge_objects(original, patch.clone(), Some(node))?))
        }
        _ => Err(PatchError::Malformed("invalid JSON document".to_owned())),
    }
}

fn merge_objects<N: TypeNode>(mut original: Fields, mut patch: Fields, node: Option<&N>) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, node)?;
    for (name, change) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM) {
            None => (name, false),
            Some(rest) => (list_name(rest).ok_or_else(bad_primitive_list)?.to_owned(), true),
        };
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let field = node.and_then(|node| node.field(&name));
        let merged = match (original.remove(&name), change) {
            (None, _) if deletes => continue,
            (Some(current), change) if deletes && !current.is_array() => {
                let kept = if change.is_array() { current } else { change };
                original.insert(name, kept);
                continue;
            }
            (Some(Value::Object(current)), Value::Object(change)) => {
                if strategy(field.as_ref()) == Strategy::Replace {
                    Value::Object(change)
                } else {
                    Value::Object(merge_objects(current, change, field.as_ref())?)
                }
            }
            (Some(Value::Array(current)), Value::Array(change)) => {
                Value::Array(merge_lists(current, change, field.as_ref(), deletes)?)
            }
            (_, change) => as_new(change),
        };
        original.insert(name, merged);
    }
    Ok(original)
}

/// What a patch value becomes where there was nothing to merge it into: itself, without its directives, which are not
/// checked then.
fn as_new(change: Value) -> Value {
    match change {
        Value::Object(fields) => {
            let is_directive = |name: &str| {
                name == DIRECTIVE || name == RETAIN_KEYS || name.starts_with(SET_ORDER) || name.starts_with(DELETE_FROM)
            };
            let kept = fields.into_iter().filter(|(name, value)| !is_directive(name) && !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, as_new(value))).collect())
        }
        Value::Array(items) => items.into_iter().filter(|item| item.get(DIRECTIVE).is_none()).map(as_new).collect(),
        scalar => scalar,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Default,
    Merge,
    Replace,
}

fn strategy<N: TypeNode>(node: Option<&N>) -> Strategy {
    let Some(node) = node else { return Strategy::Default };
    let mut words = node.patch_strategy().unwrap_or_default().split(',').filter(|word| *word != "retainKeys");
    match words.next() {
        Some("merge") => Strategy::Merge,
        Some("replace") => Strategy::Replace,
        _ => Strategy::Default,
    }
}

// === directives of an object ===

fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad_format = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let retained: HashSet<&str> =
        retained.as_array().ok_or_else(bad_format)?.iter().filter_map(Value::as_str).collect();
    let is_change = |(name, value): (&String, &Value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER)
    };
    if patch.iter().filter(|entry| is_change(*entry)).any(|(name, _)| !retained.contains(name.as_str())) {
        return Err(bad_format());
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// Merges the lists for which the patch states an order, and takes them out of the patch.
fn merge_ordered_lists<N: TypeNode>(
    original: &mut Fields,
    patch: &mut Fields,
    node: Option<&N>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let name = directive.strip_prefix(SET_ORDER).and_then(list_name).ok_or_else(bad_element_order)?;
        let Value::Array(order) = order else { return Err(bad_element_order()) };
        let field = node.and_then(|node| node.field(name));
        let key = MergeKey::of(field.as_ref());
        let current = list_field(original.get(name))?;
        let change = list_field(patch.get(name))?;
        check_order(change.unwrap_or_default(), &order, key)?;
        let (live, merged) = match (current, change) {
            (None, None) => continue,
            (Some(current), None) => (current.to_vec(), current.to_vec()),
            (None, Some(change)) => match as_new(Value::Array(change.to_vec())) {
                Value::Array(merged) => (Vec::new(), merged),
                _ => continue,
            },
            (Some(current), Some(change)) => {
                (current.to_vec(), merge_lists(current.to_vec(), change.to_vec(), field.as_ref(), false)?)
            }
        };
        if merged.is_empty() && live.is_empty() {
            return Err(PatchError::DoesNotApply("no elements in any of the given slices".to_owned()));
        }
        let ordered = in_order(merged, &order, &live, key)?;
        patch.remove(name);
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn list_field(value: Option<&Value>) -> Result<Option<&[Value]>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(PatchError::Unmergeable(format!("expected a list, but received {}", go_text::plain(other)))),
    }
}

/// The items of the patch must stand in the stated order, and all be part of it.
fn check_order(change: &[Value], order: &[Value], key: MergeKey<'_>) -> Result<(), PatchError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut remaining = order.iter();
    for item in change.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let identity = key.identity(item)?;
        let found = loop {
            match remaining.next() {
                None => break false,
                Some(next) if key.identity(next)? == identity => break true,
                Some(_) => {}
            }
        };
        if !found {
            let shown = |items: &[Value]| go_text::plain(&Value::Array(items.to_vec()));
            return Err(PatchError::Unmergeable(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                shown(change),
                shown(order)
            )));
        }
    }
    Ok(())
}

fn list_name(rest: &str) -> Option<&str> {
    rest.strip_prefix('/').filter(|name| !name.is_empty())
}

// === errors ===

fn unknown_directive(directive: &Value, fields: &Fields) -> PatchError {
    let fields = go_text::plain(&Value::Object(fields.clone()));
    PatchError::Unmergeable(format!("unknown patch type: {} in map: {fields}", go_text::plain(directive)))
}

fn bad_primitive_list() -> PatchError {
    PatchError::Malformed("invalid patch format of primitive list".to_owned())
}

fn bad_element_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::typed::{ListKey, Shape};

    /// The little of a pod template that the patches below touch.
    #[derive(Clone)]
    struct Template(&'static str);

    impl TypeNode for Template {
        fn shape(&self) -> Shape {
            Shape::Untyped
        }
        fn field(&self, name: &str) -> Option<Self> {
            ["containers", "env", "volumes", "finalizers", "args", "strategy", "owner"]
                .into_iter()
                .find(|known| *known == name)
                .map(Template)
        }
        fn declares(&self, _name: &str) -> bool {
            true
        }
        fn item(&self) -> Option<Self> {
            Some(Template("item"))
        }
        fn list_keys(&self) -> Vec<ListKey<'_>> {
            Vec::new()
        }
        fn patch_merge_key(&self) -> Option<&str> {
            matches!(self.0, "containers" | "env" | "volumes").then_some("name")
        }
        fn patch_strategy(&self) -> Option<&str> {
            match self.0 {
                "containers" | "env" | "finalizers" => Some("merge"),
                "volumes" => Some("merge,retainKeys"),
                "strategy" => Some("retainKeys"),
                "owner" => Some("replace"),
                _ => None,
            }
        }
    }

    fn patched(document: Value, patch: &Value) -> Result<Value, PatchError> {
        apply(document, patch, &Template("root"))
    }

    #[test]
    fn patches_that_apply() {
        let document = json!({
            "containers": [
                {"name": "a", "image": "a:1", "args": ["x"], "env": [{"name": "E1", "value": "1"}, {"name": "E2", "value": "2"}]},
                {"name": "b", "image": "b:1"},
            ],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}],
            "finalizers": ["x", "y"],
            "owner": {"a": 1, "b": 2},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        });
        let table = [
            (
                "new items of the patch come first",
                json!({"containers": [{"name": "c", "image": "c:1"}]}),
                "/containers/0/name",
                json!("c"),
            ),
            (
                "an item is merged by its key",
                json!({"containers": [{"name": "b", "image": "b:2"}]}),
                "/containers/1",
                json!({"name": "b", "image": "b:2"}),
            ),
            (
                "nested lists merge too",
                json!({"containers": [{"name": "a", "env": [{"name": "E2", "value": "9"}, {"name": "E3", "value": "3"}]}]}),
                "/containers/0/env",
                json!([{"name": "E1", "value": "1"}, {"name": "E2", "value": "9"}, {"name": "E3", "value": "3"}]),
            ),
            (
                "a list without strategy is replaced",
                json!({"containers": [{"name": "a", "args": ["y", "z"]}]}),
                "/containers/0/args",
                json!(["y", "z"]),
            ),
            (
                "an item is deleted",
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                "/containers",
                json!([{"name": "b", "image": "b:1"}]),
            ),
            (
                "a list is replaced",
                json!({"containers": [{"$patch": "replace"}, {"name": "o"}]}),
                "/containers",
                json!([{"name": "o"}]),
            ),
            (
                "an object is replaced",
                json!({"strategy": {"$patch": "replace", "type": "Recreate"}}),
                "/strategy",
                json!({"type": "Recreate"}),
            ),
            ("an object is emptied", json!({"strategy": {"$patch": "delete"}}), "/strategy", json!({})),
            ("replace is the strategy of the field", json!({"owner": {"c": 3}}), "/owner", json!({"c": 3})),
            (
                "only retained keys stay",
                json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
                "/strategy",
                json!({"type": "Recreate"}),
            ),
            (
                "retained keys in an item",
                json!({"volumes": [{"$retainKeys": ["name", "emptyDir"], "name": "w", "emptyDir": {}}]}),
                "/volumes",
                json!([{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]),
            ),
            ("scalars are merged", json!({"finalizers": ["z", "x"]}), "/finalizers", json!(["z", "x", "y"])),
            ("scalars are deleted", json!({"$deleteFromPrimitiveList/finalizers": ["x"]}), "/finalizers", json!(["y"])),
            (
                "the order is set",
                json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
                "/containers/0/name",
                json!("b"),
            ),
            (
                "order and change",
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "c"}]}),
                "/containers",
                json!([{"name": "c"}, {"name": "a", "image": "a:1", "args": ["x"], "env": [{"name": "E1", "value": "1"}, {"name": "E2", "value": "2"}]}, {"name": "b", "image": "b:1"}]),
            ),
            (
                "the order of scalars",
                json!({"$setElementOrder/finalizers": ["y", "x"]}),
                "/finalizers",
                json!(["y", "x"]),
            ),
            (
                "null deletes",
                json!({"strategy": {"rollingUpdate": null}}),
                "/strategy",
                json!({"type": "RollingUpdate"}),
            ),
            (
                "directives do not enter a new object",
                json!({"fresh": {"$retainKeys": ["a"], "a": 1}, "x": null}),
                "/fresh",
                json!({"a": 1}),
            ),
            ("nor are they checked there", json!({"fresh": {"$patch": "merge", "a": 1}}), "/fresh", json!({"a": 1})),
        ];
        for (what, patch, pointer, expected) in table {
            let result = patched(document.clone(), &patch).unwrap();
            assert_eq!(result.pointer(pointer), Some(&expected), "{what}: {patch}");
        }
    }

    #[test]
    fn patches_that_do_not() {
        let document = json!({"containers": [{"name": "a"}], "finalizers": ["x"], "strategy": {}});
        let table = [
            (
                json!({"containers": [{"$patch": "explode", "name": "a"}]}),
                "unknown patch type: explode in map: map[$patch:explode name:a]",
            ),
            (json!({"containers": [{"image": "q"}]}), "map: map[image:q] does not contain declared merge key: name"),
            (json!({"strategy": {"$patch": "merge"}}), "unknown patch type: merge in map: map[$patch:merge]"),
            (json!({"$retainKeys": ["a"], "b": 1}), "invalid patch format of retainKeys"),
            (json!({"$setElementOrder/containers": {}}), "invalid patch format of setElementOrder list"),
            (json!({"$deleteFromPrimitiveListfinalizers": ["x"]}), "invalid patch format of primitive list"),
            (json!({"containers": [["a"]]}), "lists of lists are not supported"),
            (json!([1]), "invalid JSON document"),
        ];
        for (patch, message) in table {
            assert_eq!(patched(document.clone(), &patch).unwrap_err().to_string(), message, "{patch}");
        }
    }
}
