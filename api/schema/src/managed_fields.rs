//! Who owns which field: `metadata.managedFields`, kept on every write, and server-side apply, which asks it.

mod apply;
mod entries;

use std::sync::LazyLock;

use serde_json::Value;

pub use apply::{ApplyError, Conflict, apply};
use entries::{Entries, Identity, Ownership};

use crate::{
    Schema,
    fieldset::{self, FieldSet, compare},
    typed::TypeNode,
};

/// Most managers that updates may leave behind; the oldest are merged into one.
pub const UPDATE_MANAGERS_MAX: usize = 10;

/// Who writes, when, and through which door.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    /// The apiVersion in which the object is written.
    pub api_version: &'a str,
    /// `status`, `scale`, …; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 in seconds.
    pub time: &'a str,
}

/// Records the ownership of an update in `new`.
///
/// `live` is the stored object, or [`TypeNode::zero`] when `new` is created. `ignored` are the fields that this door
/// does not write (`status` for the object itself, all but `status` for its status), which nobody gets to own.
///
/// An object whose managedFields were emptied (`[]` or `[{}]`) is not tracked until something is applied to it. Custom
/// objects are pruned first, which drops the `[]`: to them only `[{}]` means that.
pub fn update<N: TypeNode>(live: &Value, new: &mut Value, writer: &Writer<'_>, node: &N, ignored: &FieldSet) {
    let mut entries = entries::of_live_or_new(live, new, !writer.subresource.is_empty());
    entries::take(new);
    let is_create = live.pointer("/metadata/uid").is_none();
    if entries.is_empty() && !is_create {
        return;
    }
    record(&mut entries, live, new, writer, node, ignored);
    entries.cap_updaters(UPDATE_MANAGERS_MAX);
    entries.write_to(new);
}

/// Gives the fields in which `new` differs from `live` to the writer, and takes them from all others.
fn record<N: TypeNode>(
    entries: &mut Entries,
    live: &Value,
    new: &Value,
    writer: &Writer<'_>,
    node: &N,
    ignored: &FieldSet,
) {
    let difference = compare(live, new, node).without(ignored);
    let changed = difference.changed();
    let lost = changed.clone().union(&difference.removed);
    entries.take_from_all(&lost);
    let gained = changed.difference(&NEVER_OWNED);
    if gained.is_empty() {
        return;
    }
    let identity = Identity::of_update(writer);
    let previous = entries.remove(&identity).map(|entry| entry.set).unwrap_or_default();
    let api_version = writer.api_version.to_owned();
    entries
        .insert(identity, Ownership { set: previous.union(&gained), api_version, time: Some(writer.time.to_owned()) });
}

/// The type of an object as its managedFields record it, for who makes `new` of it without knowing its kind: which lists have
/// keys, and what is owned as one value. Lists of which nobody owns an item are replaced whole.
pub fn recorded_type(live: &Value, new: &Value) -> Schema {
    let entries = entries::of(live).unwrap_or_default();
    fieldset::recorded(entries.iter().map(|(_, ownership)| ownership.set.clone()), &[live, new])
}

/// Fields that the server keeps, or that say which object it is.
static NEVER_OWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Schema, typed::SchemaNode};

    fn schema() -> Schema {
        serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "n": {"type": "integer"}, "list": {"type": "array", "items": {"type": "string"}}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}))
        .unwrap()
    }

    fn writer<'a>(manager: &'a str, time: &'a str) -> Writer<'a> {
        Writer { manager, api_version: "g/v1", subresource: "", time }
    }

    fn written(live: &Value, mut new: Value, by: &Writer<'_>) -> Value {
        let schema = schema();
        update(live, &mut new, by, &SchemaNode::of_object(&schema), &FieldSet::new());
        new
    }

    #[test]
    fn writers_own_what_they_change() {
        let created = written(
            &json!({}),
            json!({"kind": "W", "metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"n": 1}}),
            &writer("one", "t1"),
        );
        assert_eq!(
            created["metadata"]["managedFields"],
            json!([{"manager": "one", "operation": "Update", "apiVersion": "g/v1", "time": "t1", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {".": {}, "f:n": {}}}}])
        );
        let mut stored = created.clone();
        stored["metadata"]["uid"] = json!("u");
        let mut next = stored.clone();
        next["spec"] = json!({"n": 2, "list": ["x"]});
        let updated = written(&stored, next, &writer("two", "t2"));
        let fields: Vec<&Value> =
            updated["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["fieldsV1"]).collect();
        assert_eq!(fields[0], &json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {}}));
        assert_eq!(fields[1], &json!({"f:spec": {"f:list": {}, "f:n": {}}}));
        let same = written(&updated, updated.clone(), &writer("three", "t3"));
        assert_eq!(same, updated, "a write that changes nothing owns nothing");
    }

    #[test]
    fn emptied_managed_fields_stay_empty() {
        let live = json!({"metadata": {"uid": "u", "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "g/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]}, "spec": {"n": 1}});
        for reset in [json!([]), json!([{}])] {
            let mut new = live.clone();
            new["metadata"]["managedFields"] = reset;
            new["spec"]["n"] = json!(2);
            let stored = written(&live, new, &writer("one", "t"));
            assert_eq!(stored["metadata"].get("managedFields"), None);
            let again = written(&stored, json!({"metadata": {"uid": "u"}, "spec": {"n": 3}}), &writer("one", "t"));
            assert_eq!(again["metadata"].get("managedFields"), None);
        }
    }

    #[test]
    fn the_oldest_updaters_are_merged_into_one() {
        let mut live = written(&json!({}), json!({"metadata": {}, "status": {"f0": 0}}), &writer("m00", "t00"));
        for number in 1..14 {
            live["metadata"]["uid"] = json!("u");
            let mut next = live.clone();
            next["status"][format!("f{number}")] = json!(number);
            live = written(&live, next, &writer(&format!("m{number:02}"), &format!("t{number:02}")));
        }
        let managers: Vec<&str> = live["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["manager"].as_str().unwrap())
            .collect();
        assert_eq!(managers.len(), UPDATE_MANAGERS_MAX);
        assert!(managers.contains(&"ancient-changes") && managers.contains(&"m13") && !managers.contains(&"m00"));
    }
}
