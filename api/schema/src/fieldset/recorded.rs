//! What sets show of the type of the objects that they are about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Entry, FieldSet, Step};
use crate::schema::{ListType, MapType, Schema, SchemaType};

/// The type of an object as the owners of its fields were recorded: which objects and lists are one value, and by which keys
/// the items of the other lists are told apart. Of what nobody owns, objects are merged by field and lists are one value. Where
/// the values of the objects are of different kinds, nothing is known.
pub(crate) fn recorded(owners: impl IntoIterator<Item = FieldSet>, objects: &[&Value]) -> Schema {
    let owners: Vec<Entry> = owners.into_iter().map(|below| Entry { member: false, below }).collect();
    shown(&owners.iter().collect::<Vec<_>>(), objects)
}

/// The type of some values at one place: what each owner has of it, or of each of its items.
fn shown(owners: &[&Entry], values: &[&Value]) -> Schema {
    let mut kinds = values.iter().filter(|value| !value.is_null()).map(|value| std::mem::discriminant(*value));
    if kinds.next().is_some_and(|first| kinds.any(|kind| kind != first)) {
        return Schema::default();
    }
    let below = || owners.iter().flat_map(|entry| &entry.below.entries);
    let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    let keyed: Vec<(_, &Entry)> = below().filter_map(|(step, entry)| Some((step.item_keys()?, entry))).collect();
    if let Some((keys, _)) = keyed.first() {
        let mut item = shown(&keyed.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), &items);
        for name in keys.keys() {
            // Who names an item and not its key relies on the default.
            let relies =
                keyed.iter().find(|(_, entry)| entry.member && !entry.below.entries.contains_key(&Step::field(name)));
            let default = relies.and_then(|(keys, _)| keys.get(name)).cloned();
            item.properties.entry(name.clone()).or_default().default = Some(default.unwrap_or_else(|| unknown(name)));
        }
        let list_map_keys = keys.keys().cloned().collect();
        return Schema { list_map_keys, items: Some(Box::new(item)), ..list(ListType::Map) };
    }
    if below().any(|(step, _)| step.is_value()) {
        return Schema { items: Some(Box::default()), ..list(ListType::Set) };
    }
    if values.iter().any(|value| value.is_array()) {
        return list(ListType::Atomic);
    }
    let objects: Vec<_> = values.iter().filter_map(|value| value.as_object()).collect();
    if objects.is_empty() {
        return Schema::default();
    }
    let mut fields: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for (name, entry) in below().filter_map(|(step, entry)| Some((step.field_name()?, entry))) {
        fields.entry(name).or_default().push(entry);
    }
    let is_owned = owners.iter().any(|entry| entry.member) && objects.iter().any(|object| !object.is_empty());
    let map_type = (is_owned && fields.is_empty()).then_some(MapType::Atomic);
    let properties = fields.into_iter().map(|(name, owners)| {
        let members: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        (name.to_owned(), shown(&owners, &members))
    });
    Schema {
        type_: Some(SchemaType::Object),
        map_type,
        properties: properties.collect(),
        preserve_unknown_fields: Some(true),
        ..Schema::default()
    }
}

fn list(list_type: ListType) -> Schema {
    Schema { type_: Some(SchemaType::Array), list_type: Some(list_type), ..Schema::default() }
}

/// What stands for an absent key on which nobody has relied so far: with null, the item is none of those that are there. Built-in
/// kinds have one such key, that of the ports of containers and Services.
fn unknown(key: &str) -> Value {
    if key == "protocol" { "TCP".into() } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_shows_which_lists_have_keys_and_what_is_one_value() {
        let ours = json!({"f:spec": {
            "f:ports": {"k:{\"port\":80,\"zone\":\"a\"}": {".": {}, "f:port": {}}},
            "f:args": {}, "f:finalizers": {"v:\"y\"": {}}, "f:selector": {}, "f:labels": {"f:a": {}}, "f:empty": {},
        }});
        let theirs = json!({"f:spec": {
            "f:ports": {"k:{\"port\":53,\"zone\":\"b\"}": {".": {}, "f:port": {}, "f:zone": {}, "f:options": {}}},
        }});
        let value = json!({"spec": {
            "ports": [{"port": 80, "zone": "a"}, {"port": 53, "zone": "b", "options": ["x"]}],
            "args": ["a"], "finalizers": ["y"], "selector": {"a": "b"}, "labels": {"a": "b"}, "empty": {}, "others": [1],
        }});
        let schema = recorded([&theirs, &ours].map(|fields| FieldSet::from_json(fields).unwrap()), &[&value]);
        let spec = &schema.properties["spec"].properties;
        let ports = &spec["ports"];
        assert_eq!(
            (ports.list_type, &*ports.list_map_keys),
            (Some(ListType::Map), &["port".into(), "zone".into()][..])
        );
        let port = ports.items.as_deref().unwrap();
        assert_eq!(port.properties["zone"].default, Some(json!("a")), "we have named no zone");
        assert_eq!(port.properties["port"].default, Some(Value::Null));
        assert_eq!(port.properties["options"].list_type, Some(ListType::Atomic));
        assert_eq!(
            (spec["args"].list_type, spec["finalizers"].list_type),
            (Some(ListType::Atomic), Some(ListType::Set))
        );
        let atomic = |name: &str| spec[name].map_type == Some(MapType::Atomic);
        assert!(atomic("selector") && !atomic("labels") && !atomic("empty"));
        assert!(!spec.contains_key("others"));
    }
}
