//! What a write changes, field by field.

use std::collections::BTreeMap;

use koord_resource::schema::patch::merge;
use koord_runtime::write::{Action, comparable};
use serde_json::{Value, json};

/// One field that gets another value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Such as `status.allocatable[kubernetes.io/batch-cpu]`.
    pub(crate) path: String,
    /// None where the field is new.
    pub(crate) from: Option<Value>,
    /// None where it goes.
    pub(crate) to: Option<Value>,
}

/// The object as a write leaves it; null when it is gone.
pub(crate) fn planned(action: &Action, before: &Value) -> Value {
    match action {
        Action::Create(object) | Action::Update { object, .. } => object.clone(),
        Action::Delete(_) | Action::Evict(_) => Value::Null,
        Action::Apply { object, owned } => match merge::diff(owned, &comparable(object)) {
            Some(difference) => merge::apply(before.clone(), &difference),
            None => before.clone(),
        },
        Action::Bind { node, .. } => merge::apply(before.clone(), &json!({"spec": {"nodeName": node}})),
        Action::Patch { patch, .. } => {
            let mut patch = patch.clone();
            // What the write is decided on is a precondition, and no change.
            if let Some(metadata) = patch["metadata"].as_object_mut() {
                metadata.remove("uid");
                metadata.remove("resourceVersion");
            }
            merge::apply(before.clone(), &patch)
        }
    }
}

/// The fields that differ, in the order of their paths.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let (mut from, mut to) = (leaves(before), leaves(after));
    let mut paths: Vec<String> = from.keys().chain(to.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    let each = paths.into_iter().map(|path| Change { from: from.remove(&path), to: to.remove(&path), path });
    each.filter(|change| change.from != change.to).collect()
}

fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    visit(String::new(), value, &mut found);
    found
}

fn visit(path: String, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null if path.is_empty() => {}
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                visit(below(&path, name), member, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                visit(format!("{path}[{index}]"), item, found);
            }
        }
        value => {
            found.insert(path, value.clone());
        }
    }
}

fn below(path: &str, name: &str) -> String {
    match name {
        name if name.contains(['.', '/', '[']) => format!("{path}[{name}]"),
        name if path.is_empty() => name.to_owned(),
        name => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_says_and_its_preconditions_are_no_change() {
        let before = json!({"metadata": {"name": "n", "uid": "u"}, "status": {"capacity": {"a.b/c": "1", "cpu": "2"}}});
        let patch = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"capacity": {"a.b/c": null, "d": ["x"]}},
        });
        let after = planned(&Action::Patch { subresource: "status", patch }, &before);
        let found = changes(&before, &after);
        let change = |path: &str, from: Option<Value>, to: Option<Value>| Change { path: path.to_owned(), from, to };
        assert_eq!(
            found,
            [
                change("status.capacity.d[0]", None, Some(json!("x"))),
                change("status.capacity[a.b/c]", Some(json!("1")), None),
            ]
        );
        assert_eq!(changes(&before, &before), []);
    }

    #[test]
    fn objects_that_come_and_go_change_in_every_field() {
        let object = json!({"kind": "K", "spec": {}});
        assert_eq!(changes(&Value::Null, &planned(&Action::Create(object.clone()), &Value::Null)).len(), 2);
        let gone = planned(&Action::Delete(koord_runtime::write::Deletion::of("u".into())), &object);
        assert!(changes(&object, &gone).iter().all(|change| change.to.is_none()));
    }
}
