//! JSON patch (RFC 6902), with the liberties that the API server's library takes.

use serde_json::{Map, Value};

use super::PatchError;
use crate::nesting::{DEPTH_MAX, depth};

/// Most operations in one patch.
pub const OPERATIONS_MAX: usize = 10_000;
/// Most bytes that all `copy` operations of one patch may copy.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies a patch, a JSON array of operations, to a document.
///
/// Beyond the RFC, as the API server does: a missing `value` is `null`, an index may count from the end (`-1`),
/// `replace` may set a field that is absent, and `test` for `null` holds where a field is absent. The document as a
/// whole cannot be addressed.
pub fn apply(document: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = patch
        .as_array()
        .ok_or_else(|| PatchError::Malformed("a JSON patch must be an array of operations".to_owned()))?;
    if operations.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations { max: OPERATIONS_MAX, found: operations.len() });
    }
    let operations = operations.iter().map(fields_of).collect::<Result<Vec<_>, _>>()?;
    let mut document = document;
    let mut copied_bytes = 0;
    for operation in operations {
        apply_one(&mut document, operation, &mut copied_bytes)?;
    }
    Ok(document)
}

fn fields_of(operation: &Value) -> Result<&Map<String, Value>, PatchError> {
    operation
        .as_object()
        .ok_or_else(|| PatchError::Malformed("every operation of a JSON patch must be an object".to_owned()))
}

fn apply_one(document: &mut Value, operation: &Map<String, Value>, copied_bytes: &mut usize) -> Result<(), PatchError> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => add(document, pointer(operation, "path")?, value()),
        "remove" => remove(document, pointer(operation, "path")?).map(drop),
        "replace" => replace(document, pointer(operation, "path")?, value()),
        "move" => {
            let moved = remove(document, pointer(operation, "from")?)?;
            add(document, pointer(operation, "path")?, moved)
        }
        "copy" => {
            let from = pointer(operation, "from")?;
            let copied = get(document, from)?.cloned().unwrap_or(Value::Null);
            *copied_bytes = copied_bytes.saturating_add(copied.to_string().len());
            if *copied_bytes > COPY_BYTES_MAX {
                return Err(PatchError::DoesNotApply(format!(
                    "the copy operations of the patch copy more than {COPY_BYTES_MAX} bytes"
                )));
            }
            add(document, pointer(operation, "path")?, copied)
        }
        "test" => {
            let path = pointer(operation, "path")?;
            let found = get(document, path)?.unwrap_or(&Value::Null);
            if *found == value() { Ok(()) } else { Err(fails(path, "testing value failed")) }
        }
        other => Err(PatchError::DoesNotApply(format!("Unexpected kind: {other}"))),
    }
}

fn pointer<'a>(operation: &'a Map<String, Value>, member: &str) -> Result<&'a str, PatchError> {
    operation
        .get(member)
        .and_then(Value::as_str)
        .ok_or_else(|| PatchError::DoesNotApply(format!("an operation of the patch lacks {member:?}")))
}

fn fails(path: &str, why: &str) -> PatchError {
    PatchError::DoesNotApply(format!("{path:?}: {why}"))
}

/// The container that a pointer's last token addresses into, and that token.
fn parent<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), PatchError> {
    let (front, last) = path.rsplit_once('/').ok_or_else(|| fails(path, "not a path below the document"))?;
    let mut place = document;
    for token in front.split('/').skip(1) {
        let token = unescape(token);
        let next = match place {
            Value::Object(fields) => fields.get_mut(&token),
            Value::Array(items) => index_of(&token, items.len()).and_then(|index| items.get_mut(index)),
            _ => None,
        };
        place = next.ok_or_else(|| fails(path, "the document has no such parent"))?;
    }
    Ok((place, unescape(last)))
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The index that a token means in an array of `len` items; negative ones count from the end.
fn index_of(token: &str, len: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The value at a path; `None` where an object lacks the field.
fn get<'d>(document: &'d mut Value, path: &str) -> Result<Option<&'d Value>, PatchError> {
    let (place, key) = parent(document, path)?;
    match place {
        Value::Object(fields) => Ok(fields.get(&key)),
        Value::Array(items) => {
            let index = index_of(&key, items.len()).ok_or_else(|| fails(path, "no such index"))?;
            Ok(items.get(index))
        }
        _ => Err(fails(path, "the parent is neither an object nor an array")),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    let (place, key) = parent(document, path)?;
    match place {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            let index = index_of(&key, items.len() + 1).ok_or_else(|| fails(path, "no such index"))?;
            items.insert(index, value);
        }
        _ => return Err(fails(path, "the parent is neither an object nor an array")),
    }
    Ok(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    let (place, key) = parent(document, path)?;
    match place {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) => {
            let index = index_of(&key, items.len()).ok_or_else(|| fails(path, "no such index"))?;
            items[index] = value;
        }
        _ => return Err(fails(path, "the parent is neither an object nor an array")),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, PatchError> {
    let (place, key) = parent(document, path)?;
    match place {
        Value::Object(fields) => fields.remove(&key).ok_or_else(|| fails(path, "no such field")),
        Value::Array(items) => {
            let index = index_of(&key, items.len()).ok_or_else(|| fails(path, "no such index"))?;
            Ok(items.remove(index))
        }
        _ => Err(fails(path, "the parent is neither an object nor an array")),
    }
}

fn check_depth(path: &str, value: &Value) -> Result<(), PatchError> {
    if path.matches('/').count() + depth(value) > DEPTH_MAX {
        return Err(fails(path, &format!("the result would be nested deeper than {DEPTH_MAX} levels")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finalizers() -> Value {
        json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c"]}})
    }

    #[test]
    fn operations_that_apply() {
        let table = [
            (json!([]), finalizers()),
            (
                json!([{"op": "add", "path": "/metadata/x~1y", "value": 1}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c"], "x/y": 1}}),
            ),
            (
                json!([{"op": "add", "path": "/metadata/finalizers/0", "value": "z"}]),
                json!({"metadata": {"name": "p", "finalizers": ["z", "b", "a", "c"]}}),
            ),
            (
                json!([{"op": "add", "path": "/metadata/finalizers/3", "value": "z"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c", "z"]}}),
            ),
            (
                json!([{"op": "add", "path": "/metadata/finalizers/-1", "value": "z"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c", "z"]}}),
            ),
            (
                json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "z"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c", "z"]}}),
            ),
            (
                json!([{"op": "remove", "path": "/metadata/finalizers/-1"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a"]}}),
            ),
            (
                json!([{"op": "replace", "path": "/metadata/finalizers/0", "value": "z"}]),
                json!({"metadata": {"name": "p", "finalizers": ["z", "a", "c"]}}),
            ),
            (
                json!([{"op": "replace", "path": "/spec", "value": {}}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c"]}, "spec": {}}),
            ),
            (
                json!([{"op": "add", "path": "/metadata/name"}]),
                json!({"metadata": {"name": null, "finalizers": ["b", "a", "c"]}}),
            ),
            (json!([{"op": "test", "path": "/metadata/uid", "value": null}]), finalizers()),
            (json!([{"op": "test", "path": "/metadata/name", "value": "p"}]), finalizers()),
            (
                json!([{"op": "move", "from": "/metadata/name", "path": "/n"}]),
                json!({"metadata": {"finalizers": ["b", "a", "c"]}, "n": "p"}),
            ),
            (
                json!([{"op": "copy", "from": "/metadata/name", "path": "/n"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c"]}, "n": "p"}),
            ),
        ];
        for (patch, expected) in table {
            assert_eq!(apply(finalizers(), &patch), Ok(expected), "{patch}");
        }
    }

    #[test]
    fn operations_that_do_not_apply() {
        for patch in [
            json!([{"op": "add", "path": "/spec/a", "value": 1}]),
            json!([{"op": "add", "path": "", "value": 1}]),
            json!([{"op": "add", "path": "/metadata/name/x", "value": 1}]),
            json!([{"op": "add", "path": "/metadata/finalizers/x", "value": 1}]),
            json!([{"op": "add", "path": "/metadata/finalizers/4", "value": 1}]),
            json!([{"op": "remove", "path": "/metadata/zz"}]),
            json!([{"op": "remove", "path": "/metadata/finalizers/7"}]),
            json!([{"op": "remove", "path": "/metadata/finalizers/-4"}]),
            json!([{"op": "move", "from": "/metadata/zz", "path": "/n"}]),
            json!([{"op": "test", "path": "/metadata/name", "value": "q"}]),
            json!([{"path": "/metadata/name", "value": "q"}]),
            json!([{"op": "explode", "path": "/metadata/name"}]),
        ] {
            assert!(matches!(apply(finalizers(), &patch), Err(PatchError::DoesNotApply(_))), "{patch}");
        }
    }

    #[test]
    fn patches_that_are_no_patches() {
        assert!(matches!(apply(finalizers(), &json!({})), Err(PatchError::Malformed(_))));
        assert!(matches!(apply(finalizers(), &json!([1])), Err(PatchError::Malformed(_))));
        let many = Value::Array(vec![json!({"op": "test", "path": "/a", "value": null}); OPERATIONS_MAX + 1]);
        assert_eq!(
            apply(finalizers(), &many).unwrap_err().to_string(),
            "The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    #[test]
    fn copies_can_neither_blow_up_nor_nest_without_end() {
        let doubling: Vec<Value> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
        let failed = apply(json!({"a": [1]}), &Value::Array(doubling));
        assert!(matches!(failed, Err(PatchError::DoesNotApply(_))));
        let inwards: Vec<Value> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/0"})).collect();
        assert!(apply(json!({"a": []}), &Value::Array(inwards)).is_err());
    }
}
