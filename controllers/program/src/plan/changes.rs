//! What a write changes, field by field.

use std::collections::BTreeMap;

use koord_resource::schema::{
    Schema,
    fieldset::FieldSet,
    managed_fields::{self, ApplyError, Writer, recorded_type},
    patch::{merge, strategic},
    typed::{ListKey, SchemaNode, Shape, TypeNode},
};
use koord_runtime::write::Action;
use serde_json::{Value, json};

/// One field that gets another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Such as `status.allocatable[kubernetes.io/batch-cpu]`. An item of a list is named by its keys where the object's
    /// managedFields show them (`spec.ports[port=80,protocol=TCP].name`), and by its place otherwise.
    pub path: String,
    /// None where the field is new.
    pub from: Option<Value>,
    /// None where it goes.
    pub to: Option<Value>,
}

/// The object as a write of this field manager leaves it; null when it is gone. The API server's own part is not in it: what it
/// fills in, and what webhooks change.
pub fn planned(action: &Action, before: &Value, manager: &str) -> Result<Value, ApplyError> {
    Ok(match action {
        Action::Create(object) | Action::Update { object, .. } => object.clone(),
        Action::Delete(_) | Action::Evict(_) => Value::Null,
        Action::Apply { object, .. } => applied(object, before, manager)?,
        Action::Bind { node, annotations, .. } => {
            let mut change = json!({"spec": {"nodeName": node}});
            if !annotations.is_empty() {
                change["metadata"]["annotations"] = json!(annotations);
            }
            merge::apply(before.clone(), &change)
        }
        Action::Patch { patch, .. } => merge::apply(before.clone(), &unconditional(patch)),
        Action::StrategicPatch { patch, .. } => {
            let (patch, type_) = (unconditional(patch), recorded_type(before, patch));
            // What is no patch of an object changes nothing that could be shown.
            strategic::apply(before.clone(), &patch, &ByKeys(SchemaNode::of_object(&type_))).unwrap_or_default()
        }
    })
}

/// A patch without what it is decided on: that is a precondition, and no change.
fn unconditional(patch: &Value) -> Value {
    let mut patch = patch.clone();
    if let Some(metadata) = patch["metadata"].as_object_mut() {
        metadata.remove("uid");
        metadata.remove("resourceVersion");
    }
    patch
}

/// A type whose lists of keyed items are merged by their first key, as built-in kinds declare it for strategic merge patch.
#[derive(Clone)]
struct ByKeys<'s>(SchemaNode<'s>);

impl TypeNode for ByKeys<'_> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn field(&self, name: &str) -> Option<Self> {
        self.0.field(name).map(Self)
    }

    fn declares(&self, name: &str) -> bool {
        self.0.declares(name)
    }

    fn item(&self) -> Option<Self> {
        self.0.item().map(Self)
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        self.0.list_keys()
    }

    fn patch_merge_key(&self) -> Option<&str> {
        self.0.list_keys().first().map(|key| key.name)
    }

    fn patch_strategy(&self) -> Option<&str> {
        self.patch_merge_key().map(|_| "merge")
    }
}

/// As the API server applies a declaration, by the type that the managedFields of the object show.
fn applied(declared: &Value, before: &Value, manager: &str) -> Result<Value, ApplyError> {
    let nothing = json!({});
    let live = if before.is_null() { &nothing } else { before };
    let api_version = declared["apiVersion"].as_str().unwrap_or_default();
    let writer = Writer { manager, api_version, subresource: "", time: "" };
    let status = FieldSet::of_fields(&[&["status"]]);
    managed_fields::apply(
        live,
        declared,
        &writer,
        &SchemaNode::of_object(&recorded_type(live, declared)),
        &status,
        true,
    )
}

/// The fields that differ, in the order of their paths. Who owns them is left out.
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let type_ = recorded_type(before, after);
    let (mut from, mut to) = (leaves(before, &type_), leaves(after, &type_));
    let mut paths: Vec<String> = from.keys().chain(to.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    let each = paths.into_iter().map(|path| Change { from: from.remove(&path), to: to.remove(&path), path });
    each.filter(|change| change.from != change.to).collect()
}

/// Hides what a Secret holds, as `kubectl diff` does: that it changes is no secret.
pub(super) fn hide(change: &mut Change) {
    if change.path.split(['.', '[']).next().is_some_and(|field| ["data", "stringData"].contains(&field)) {
        for (value, shown) in [(&mut change.from, "*** (before)"), (&mut change.to, "*** (after)")] {
            *value = value.take().map(|_| shown.into());
        }
    }
}

fn leaves(value: &Value, type_: &Schema) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    visit(String::new(), value, Some(SchemaNode::of_object(type_)), &mut found);
    found
}

/// A member that is null is none.
fn visit(path: String, value: &Value, node: Option<SchemaNode<'_>>, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                if !(path == "metadata" && name == "managedFields") {
                    visit(below(&path, name), member, node.and_then(|node| node.field(name)), found);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let name = node.and_then(|list| identity(list, item)).unwrap_or_else(|| index.to_string());
                visit(format!("{path}[{name}]"), item, node.and_then(|list| list.item()), found);
            }
        }
        value => {
            found.insert(path, value.clone());
        }
    }
}

/// What tells an item of a list apart from the others.
fn identity(list: SchemaNode<'_>, item: &Value) -> Option<String> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match list.shape() {
        Shape::SetList => Some(shown(item)),
        Shape::KeyedList => {
            let keys = list.list_keys();
            let key = |ListKey { name, default }: &ListKey<'_>| {
                item.get(*name).or(*default).map(|value| format!("{name}={}", shown(value)))
            };
            Some(keys.iter().map(key).collect::<Option<Vec<_>>>()?.join(","))
        }
        _ => None,
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
    use koord_runtime::write::Deletion;

    use super::*;

    const US: &str = "us";

    fn change(path: &str, from: Option<Value>, to: Option<Value>) -> Change {
        Change { path: path.to_owned(), from, to }
    }

    #[test]
    fn a_patch_changes_what_it_says_and_its_preconditions_are_no_change() {
        let before = json!({"metadata": {"name": "n", "uid": "u"}, "status": {"capacity": {"a.b/c": "1", "cpu": "2"}}});
        let patch = json!({
            "metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"capacity": {"a.b/c": null, "d": ["x"]}},
        });
        let after = planned(&Action::Patch { subresource: "status", patch }, &before, US).unwrap();
        assert_eq!(
            changes(&before, &after),
            [
                change("status.capacity.d[0]", None, Some(json!("x"))),
                change("status.capacity[a.b/c]", Some(json!("1")), None),
            ]
        );
        assert_eq!(changes(&before, &before), []);
    }

    #[test]
    fn a_strategic_patch_changes_the_items_that_it_names() {
        let condition = |type_: &str, status: &str| json!({"type": type_, "status": status});
        let fields = json!({"f:status": {"f:conditions": {
            "k:{\"type\":\"PodScheduled\"}": {".": {}, "f:type": {}, "f:status": {}},
            "k:{\"type\":\"Ready\"}": {".": {}, "f:type": {}, "f:status": {}},
        }}});
        let record = json!({
            "manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            "subresource": "status",
        });
        let before = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "managedFields": [record]},
            "status": {"conditions": [condition("Ready", "False"), condition("PodScheduled", "Unknown")]},
        });
        let patch = json!({"metadata": {"uid": "u"}, "status": {"conditions": [condition("PodScheduled", "False")]}});
        let after = planned(&Action::StrategicPatch { subresource: "status", patch }, &before, US).unwrap();
        let path = "status.conditions[type=PodScheduled].status";
        assert_eq!(changes(&before, &after), [change(path, Some(json!("Unknown")), Some(json!("False")))]);
    }

    #[test]
    fn objects_that_come_and_go_change_in_every_field() {
        let object = json!({"kind": "K", "spec": {}});
        let created = planned(&Action::Create(object.clone()), &Value::Null, US).unwrap();
        assert_eq!(changes(&Value::Null, &created).len(), 2);
        let gone = planned(&Action::Delete(Deletion::of("u".into())), &object, US).unwrap();
        assert!(changes(&object, &gone).iter().all(|change| change.to.is_none()));
    }

    /// Of a StatefulSet and a Service in one: what is ours, what somebody else applied, and what the API server filled in.
    fn live() -> Value {
        let owned = |manager: &str, operation: &str, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "a/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": fields},
            })
        };
        let ours = json!({
            "f:args": {}, "f:replicas": {}, "f:selector": {},
            "f:containers": {"k:{\"name\":\"postgres\"}": {".": {}, "f:name": {}, "f:image": {}, "f:tty": {}}},
            "f:ports": {
                "k:{\"port\":5432,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
                "k:{\"port\":8008,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            },
        });
        let theirs = json!({
            "f:containers": {"k:{\"name\":\"agent\"}": {".": {}, "f:name": {}, "f:image": {}}},
            "f:ports": {"k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}},
        });
        json!({
            "apiVersion": "a/v1", "kind": "K",
            "metadata": {"name": "n", "uid": "u", "managedFields": [
                owned(US, "Apply", ours), owned("mesh", "Update", theirs),
            ]},
            "spec": {
                "replicas": 1, "args": ["a", "b"], "selector": {"app": "n", "old": "x"}, "policy": "Parallel",
                "containers": [
                    {"name": "agent", "image": "agent:1"},
                    {"name": "postgres", "image": "postgres:16", "tty": true, "pull": "Always"},
                ],
                "ports": [
                    {"port": 8008, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                    {"name": "sql", "port": 5432, "protocol": "TCP"},
                ],
            },
        })
    }

    fn applying(spec: &Value) -> Vec<Change> {
        let object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "uid": "u"}, "spec": spec});
        let (before, owned) = (live(), Value::Null);
        let after = planned(&Action::Apply { object, owned }, &before, US).unwrap();
        changes(&before, &after)
    }

    #[test]
    fn what_others_have_in_a_list_stays_and_what_is_declared_no_longer_goes() {
        let declared = json!({
            "replicas": 1, "args": ["c"], "selector": {"app": "n"},
            "containers": [{"name": "postgres", "image": "postgres:17"}, {"name": "backup", "image": "backup:1"}],
            "ports": [{"name": "sql", "port": 5432}, {"port": 53}],
        });
        assert_eq!(
            applying(&declared),
            [
                change("spec.args[0]", Some(json!("a")), Some(json!("c"))),
                change("spec.args[1]", Some(json!("b")), None),
                change("spec.containers[name=backup].image", None, Some(json!("backup:1"))),
                change("spec.containers[name=backup].name", None, Some(json!("backup"))),
                change("spec.containers[name=postgres].image", Some(json!("postgres:16")), Some(json!("postgres:17"))),
                change("spec.containers[name=postgres].tty", Some(json!(true)), None),
                change("spec.ports[port=53,protocol=TCP].port", None, Some(json!(53))),
                change("spec.ports[port=8008,protocol=TCP].port", Some(json!(8008)), None),
                change("spec.ports[port=8008,protocol=TCP].protocol", Some(json!("TCP")), None),
                change("spec.selector.old", Some(json!("x")), None),
            ]
        );
    }

    #[test]
    fn a_part_that_is_declared_no_longer_goes_as_a_whole_but_for_what_others_have_of_it() {
        let declared =
            json!({"replicas": 1, "containers": [{"name": "postgres", "image": "postgres:16", "tty": true}]});
        let gone: Vec<String> = applying(&declared).into_iter().map(|change| change.path).collect();
        assert_eq!(
            gone,
            [
                "spec.args[0]",
                "spec.args[1]",
                "spec.ports[port=5432,protocol=TCP].name",
                "spec.ports[port=5432,protocol=TCP].port",
                "spec.ports[port=5432,protocol=TCP].protocol",
                "spec.ports[port=8008,protocol=TCP].port",
                "spec.ports[port=8008,protocol=TCP].protocol",
                "spec.selector.app",
                "spec.selector.old",
            ]
        );
    }

    #[test]
    fn what_a_secret_holds_is_not_shown() {
        let (before, after) =
            (json!({"data": {"a.b": "x", "c": "y"}, "type": "t"}), json!({"data": {"a.b": "z"}, "type": "u"}));
        let mut found = changes(&before, &after);
        found.iter_mut().for_each(hide);
        let (old, new) = (|| Some(json!("*** (before)")), || Some(json!("*** (after)")));
        assert_eq!(
            found,
            [
                change("data.c", old(), None),
                change("data[a.b]", old(), new()),
                change("type", Some(json!("t")), Some(json!("u"))),
            ]
        );
    }

    #[test]
    fn a_declaration_that_creates_its_object_is_shown_as_it_is() {
        let object = json!({"kind": "K", "metadata": {"name": "n"}, "spec": {"ports": [{"port": 1}]}});
        let after = planned(&Action::Apply { object, owned: Value::Null }, &Value::Null, US).unwrap();
        let paths: Vec<String> = changes(&Value::Null, &after).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["kind", "metadata.name", "spec.ports[0].port"]);
    }
}
