//! JSON patch (RFC 6902), with the liberties that the API server's library takes.
//!
//! The operations themselves are those of the crate `json-patch`. The API server reads a patch in a dialect: an index may
//! count from the end, `replace` may set an absent field, `test` for `null` holds where a field is absent. Here each
//! operation is put into the RFC's terms, against the document as the operations before it left it, and then applied.

use std::borrow::Cow;

use json_patch::{
    AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation, jsonptr::PointerBuf, patch_unsafe,
};
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
/// whole can only be replaced, by an object or an array, and tested.
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
    let path = || member(operation, "path");
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => add(document, path()?, value()),
        "remove" => remove(document, path()?),
        "replace" => replace(document, path()?, value()),
        "move" => {
            // In two steps, because an index means what it does after the removal.
            let from = member(operation, "from")?;
            let moved = locate(document, from)?.value.cloned().ok_or_else(|| fails(from, "no such field"))?;
            remove(document, from)?;
            add(document, path()?, moved)
        }
        "copy" => {
            let from = locate(document, member(operation, "from")?)?;
            let copied = from.value.cloned().unwrap_or(Value::Null);
            *copied_bytes = copied_bytes.saturating_add(copied.to_string().len());
            if *copied_bytes > COPY_BYTES_MAX {
                return Err(PatchError::DoesNotApply(format!(
                    "the copy operations of the patch copy more than {COPY_BYTES_MAX} bytes"
                )));
            }
            add(document, path()?, copied)
        }
        "test" => test(document, path()?, value()),
        other => Err(PatchError::DoesNotApply(format!("Unexpected kind: {other}"))),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    let path = place(document, path, Use::Insert)?.path;
    run(document, PatchOperation::Add(AddOperation { path, value }))
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(fails(path, "replace operation value must be object or array"));
        }
        *document = value;
        return Ok(());
    }
    let Place { path, value: found } = locate(document, path)?;
    run(
        document,
        match found {
            Some(_) => PatchOperation::Replace(ReplaceOperation { path, value }),
            None => PatchOperation::Add(AddOperation { path, value }),
        },
    )
}

fn remove(document: &mut Value, path: &str) -> Result<(), PatchError> {
    let Place { path: resolved, value: Some(_) } = locate(document, path)? else {
        return Err(fails(path, "no such field"));
    };
    run(document, PatchOperation::Remove(RemoveOperation { path: resolved }))
}

fn test(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        return if *document == value { Ok(()) } else { Err(fails(path, "testing value failed")) };
    }
    let Place { path: resolved, value: found } = locate(document, path)?;
    if found.is_none() && value.is_null() {
        return Ok(());
    }
    run(document, PatchOperation::Test(TestOperation { path: resolved, value }))
        .map_err(|_| fails(path, "testing value failed"))
}

fn run(document: &mut Value, operation: PatchOperation) -> Result<(), PatchError> {
    patch_unsafe(document, &[operation]).map_err(|error| fails(error.path.as_str(), &error.kind.to_string()))
}

fn member<'a>(operation: &'a Map<String, Value>, member: &str) -> Result<&'a str, PatchError> {
    operation
        .get(member)
        .and_then(Value::as_str)
        .ok_or_else(|| PatchError::DoesNotApply(format!("an operation of the patch lacks {member:?}")))
}

fn fails(path: &str, why: &str) -> PatchError {
    PatchError::DoesNotApply(format!("{path:?}: {why}"))
}

// === Pointers ===

/// Where a pointer of the dialect leads.
struct Place<'d> {
    /// The same place as RFC 6901 writes it.
    path: PointerBuf,
    /// What stands there; none where an object lacks the field.
    value: Option<&'d Value>,
}

/// What the last token of a pointer addresses in an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// An item that is there.
    Item,
    /// A place for a new item, which may be behind the last.
    Insert,
}

/// The place of a field, which may be absent, or of an item, which may not.
fn locate<'d>(document: &'d Value, path: &str) -> Result<Place<'d>, PatchError> {
    place(document, path, Use::Item)
}

fn place<'d>(document: &'d Value, path: &str, last: Use) -> Result<Place<'d>, PatchError> {
    let (front, token) = path.rsplit_once('/').ok_or_else(|| fails(path, "not a path below the document"))?;
    let mut parent = document;
    let mut resolved = String::with_capacity(path.len() + 4);
    for token in front.split('/').skip(1) {
        let next = match parent {
            Value::Object(fields) => {
                let token = unescape(token);
                push_field(&mut resolved, &token);
                fields.get(&*token)
            }
            Value::Array(items) => index_of(token, items.len()).map(|index| {
                push_index(&mut resolved, index);
                &items[index]
            }),
            _ => None,
        };
        parent = next.ok_or_else(|| fails(path, "the document has no such parent"))?;
    }
    let value = match parent {
        Value::Object(fields) => {
            let token = unescape(token);
            push_field(&mut resolved, &token);
            fields.get(&*token)
        }
        Value::Array(items) => {
            let index = match last {
                Use::Insert if token == "-" => Some(items.len()),
                Use::Insert => index_of(token, items.len() + 1),
                Use::Item => index_of(token, items.len()),
            };
            let index = index.ok_or_else(|| fails(path, "no such index"))?;
            push_index(&mut resolved, index);
            items.get(index)
        }
        _ => return Err(fails(path, "the parent is neither an object nor an array")),
    };
    let resolved = PointerBuf::parse(resolved).map_err(|error| fails(path, &error.to_string()))?;
    Ok(Place { path: resolved, value })
}

/// A token's text. A `~` that escapes nothing stands for itself, as in the API server.
fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') { token.replace("~1", "/").replace("~0", "~").into() } else { token.into() }
}

fn push_field(pointer: &mut String, name: &str) {
    pointer.push('/');
    for letter in name.chars() {
        match letter {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            letter => pointer.push(letter),
        }
    }
}

fn push_index(pointer: &mut String, index: usize) {
    pointer.push('/');
    pointer.push_str(&index.to_string());
}

/// The index that a token means in an array of `len` items; negative ones count from the end.
fn index_of(token: &str, len: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
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
            (
                json!([{"op": "add", "path": "/metadata/a~2b", "value": 1}, {"op": "move", "from": "/metadata/a~2b", "path": "/~"}]),
                json!({"metadata": {"name": "p", "finalizers": ["b", "a", "c"]}, "~": 1}),
            ),
            (
                json!([{"op": "move", "from": "/metadata/finalizers/0", "path": "/metadata/finalizers/-1"}]),
                json!({"metadata": {"name": "p", "finalizers": ["a", "c", "b"]}}),
            ),
            (json!([{"op": "test", "path": "/metadata/uid", "value": null}]), finalizers()),
            (json!([{"op": "test", "path": "/metadata/name", "value": "p"}]), finalizers()),
            (json!([{"op": "test", "path": "", "value": finalizers()}]), finalizers()),
            (
                json!([{"op": "replace", "path": "", "value": {"a": 1}}, {"op": "add", "path": "/b", "value": 2}]),
                json!({"a": 1, "b": 2}),
            ),
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
            json!([{"op": "add", "path": "", "value": {}}]),
            json!([{"op": "remove", "path": ""}]),
            json!([{"op": "replace", "path": "", "value": 1}]),
            json!([{"op": "test", "path": "", "value": {}}]),
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
