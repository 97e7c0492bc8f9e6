//! What is known of the members of a type while compiling.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{
    Schema,
    declare::{Emit, Member, Members, Shape},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[koord(removed(since = "v1", name = "legacy", type = Option<String>))]
struct Port {
    #[koord(renamed(since = "v1", from = "id"))]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<u16>,
    #[serde(default)]
    #[koord(default = "TCP")]
    protocol: String,
    #[serde(default)]
    mode: Mode,
    zones: Vec<String>,
    #[serde(default)]
    #[koord(schemaless, preserve_unknown_fields)]
    rest: Value,
    #[serde(default)]
    #[koord(int_or_string)]
    level: Value,
}

/// A type whose schema has a default of its own.
#[derive(Default, Serialize, Deserialize, Schema)]
#[koord(default = "fast")]
struct Mode(String);

#[derive(Serialize, Deserialize, Schema)]
struct Wrapped(Box<Port>);

#[derive(Serialize, Deserialize, Schema)]
struct Pair<T> {
    one: T,
}

#[derive(Serialize, Deserialize, Schema)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    rest: Pair<String>,
}

#[derive(Serialize, Deserialize, Schema)]
#[koord(preserve_unknown_fields)]
struct Kept {
    name: String,
}

#[derive(Serialize, Deserialize, Schema)]
enum Target {
    Disk { path: String },
}

#[test]
fn a_struct_knows_its_members_in_the_newest_version() {
    let Members::Known(members) = Port::MEMBERS else { panic!("{:?}", Port::MEMBERS) };
    let known = |name, shape, is_certain| Member { name, shape, is_certain, is_removed: false };
    assert_eq!(
        members,
        [
            known("name", Shape::String, true),
            known("target", Shape::Integer, false),
            known("protocol", Shape::String, true),
            known("mode", Shape::String, true),
            known("zones", Shape::Array, true),
            known("rest", Shape::Anything, false),
            known("level", Shape::IntOrString, false),
            Member { name: "legacy", shape: Shape::String, is_certain: false, is_removed: true },
        ]
    );
}

#[test]
fn wrappers_have_the_members_of_what_they_hold() {
    assert_eq!(Wrapped::MEMBERS, Port::MEMBERS);
    assert_eq!(<Option<Arc<Port>>>::MEMBERS, Port::MEMBERS);
    assert_eq!(<Pair<Port>>::MEMBERS, <Pair<Pair<String>>>::MEMBERS);
    assert_ne!(<Pair<Port>>::MEMBERS, <Pair<i64>>::MEMBERS);
}

#[test]
fn what_may_have_any_member_has_no_list() {
    for members in [
        Flattened::MEMBERS,
        Kept::MEMBERS,
        Target::MEMBERS,
        Mode::MEMBERS,
        Value::MEMBERS,
        <Vec<Port>>::MEMBERS,
        <BTreeMap<String, Port>>::MEMBERS,
    ] {
        assert_eq!(members, Members::Unknown);
    }
}

/// Lists whose items are known by what they have.
#[derive(Serialize, Deserialize, Schema)]
struct Lists {
    #[koord(list_type = "map", list_map_key("name", "mode"))]
    ports: Vec<Arc<Port>>,
    #[koord(items(list_type = "map", list_map_key = "protocol"))]
    rows: Vec<Vec<Port>>,
    #[koord(list_type = "map", list_map_key = "anything")]
    kept: Vec<Kept>,
}

#[test]
fn keys_that_items_have_compile() {
    let schema = Lists::schema(Emit::default());
    let keys = |name: &str| schema.properties[name].list_map_keys.join(" ");
    assert_eq!([keys("ports"), keys("rows"), keys("kept")], ["name mode", "", "anything"]);
    assert_eq!(schema.properties["rows"].items.as_ref().unwrap().list_map_keys, ["protocol"]);
}
