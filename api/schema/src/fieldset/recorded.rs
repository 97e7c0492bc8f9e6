//! What a set shows of the type of the objects that it is about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Entry, FieldSet, Step};
use crate::schema::{ListType, MapType, Schema, SchemaType};

/// The type of some values as the owners of their fields were recorded: which objects and lists are one value, and by which keys
/// the items of the other lists are told apart. Of what nobody owns, objects are merged by field and lists are one value.
pub(crate) fn recorded(set: &FieldSet, values: &[&Value]) -> Schema {
    shown(&Entry { member: false, below: set.clone() }, values)
}

fn shown(entry: &Entry, values: &[&Value]) -> Schema {
    let Entry { member, below } = entry;
    let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    let keys = keys(below);
    if !keys.is_empty() {
        let mut item = shown(&below.any_item(), &items);
        for (name, default) in &keys {
            item.properties.entry(name.clone()).or_default().default.clone_from(default);
        }
        let list_map_keys = keys.into_keys().collect();
        return Schema { list_map_keys, items: Some(Box::new(item)), ..list(ListType::Map) };
    }
    if below.entries.keys().any(Step::is_value) {
        return Schema { items: Some(Box::default()), ..list(ListType::Set) };
    }
    if values.iter().any(|value| value.is_array()) {
        return list(ListType::Atomic);
    }
    let objects: Vec<_> = values.iter().filter_map(|value| value.as_object()).collect();
    if objects.is_empty() {
        return Schema::default();
    }
    let is_one_value = *member && below.is_empty() && objects.iter().any(|object| !object.is_empty());
    let fields = below.entries.iter().filter_map(|(step, entry)| Some((step.field_name()?, entry)));
    let properties = fields.map(|(name, entry)| {
        let members: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        (name.to_owned(), shown(entry, &members))
    });
    Schema {
        type_: Some(SchemaType::Object),
        map_type: is_one_value.then_some(MapType::Atomic),
        properties: properties.collect(),
        preserve_unknown_fields: Some(true),
        ..Schema::default()
    }
}

fn list(list_type: ListType) -> Schema {
    Schema { type_: Some(SchemaType::Array), list_type: Some(list_type), ..Schema::default() }
}

/// The keys of the items, each with the value that stands for an absent one: where all items have the same, that one.
fn keys(set: &FieldSet) -> BTreeMap<String, Option<Value>> {
    let mut keys: BTreeMap<String, Option<Value>> = BTreeMap::new();
    for (name, value) in set.entries.keys().filter_map(Step::item_keys).flatten() {
        let known = keys.entry(name).or_insert_with(|| Some(value.clone()));
        *known = known.take().filter(|known| *known == value);
    }
    // The only key of built-in kinds that has a default, for the ports of containers and Services.
    if let Some(protocol) = keys.get_mut("protocol") {
        *protocol = Some("TCP".into());
    }
    keys
}

impl FieldSet {
    /// What is in the set of any item of a list.
    fn any_item(&self) -> Entry {
        let union = |all: FieldSet, entry: &Entry| all.union(&entry.below);
        Entry { member: false, below: self.entries.values().fold(FieldSet::new(), union) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_shows_which_lists_have_keys_and_what_is_one_value() {
        let fields = json!({"f:spec": {
            "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":53,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:options": {}},
            },
            "f:args": {}, "f:finalizers": {"v:\"y\"": {}}, "f:selector": {}, "f:labels": {"f:a": {}}, "f:empty": {},
        }});
        let value = json!({"spec": {
            "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "options": ["x"]}],
            "args": ["a"], "finalizers": ["y"], "selector": {"a": "b"}, "labels": {"a": "b"}, "empty": {}, "theirs": [1],
        }});
        let schema = recorded(&FieldSet::from_json(&fields).unwrap(), &[&value]);
        let spec = &schema.properties["spec"].properties;
        let ports = &spec["ports"];
        assert_eq!(
            (ports.list_type, &*ports.list_map_keys),
            (Some(ListType::Map), &["port".into(), "protocol".into()][..])
        );
        let port = ports.items.as_deref().unwrap();
        assert_eq!(port.properties["protocol"].default, Some(json!("TCP")));
        assert_eq!(port.properties["port"].default, None, "the two have no value in common");
        assert_eq!(port.properties["options"].list_type, Some(ListType::Atomic));
        assert_eq!(
            (spec["args"].list_type, spec["finalizers"].list_type),
            (Some(ListType::Atomic), Some(ListType::Set))
        );
        let atomic = |name: &str| spec[name].map_type == Some(MapType::Atomic);
        assert!(atomic("selector") && !atomic("labels") && !atomic("empty"));
        assert!(!spec.contains_key("theirs"));
    }
}
