//! What is known of the members of a type while compiling.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{
    Mutate, Schema, Validate,
    declare::{Emit, Member, Members, Shape},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
#[serde(transparent)]
struct Outlet {
    port: Port,
}

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
    assert_eq!(Outlet::MEMBERS, Port::MEMBERS);
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
    #[koord(list_type = "map", list_map_key = "name")]
    outlets: Vec<Outlet>,
}

#[test]
fn keys_that_items_have_compile() {
    let schema = Lists::schema(Emit::default());
    let keys = |name: &str| schema.properties[name].list_map_keys.join(" ");
    assert_eq!(["ports", "rows", "kept", "outlets"].map(keys), ["name mode", "", "anything", "name"]);
    assert_eq!(schema.properties["rows"].items.as_ref().unwrap().list_map_keys, ["protocol"]);
}

/// Types that contain each other.
#[derive(Serialize, Deserialize, Schema)]
struct Branch {
    name: String,
    #[koord(list_type = "map", list_map_key = "branch")]
    twigs: Vec<Twig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Next>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Twig {
    branch: String,
    #[koord(list_type = "map", list_map_key = "name")]
    branches: Vec<Branch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Box<Branch>>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Next(Box<Branch>);

#[test]
fn types_that_contain_each_other_know_their_members() {
    let shapes = |members: Members| {
        let Members::Known(members) = members else { panic!("{members:?}") };
        members.iter().map(|member| (member.name, member.shape)).collect::<Vec<_>>()
    };
    let branch = [("name", Shape::String), ("twigs", Shape::Array), ("next", Shape::Object)];
    assert_eq!(shapes(Branch::MEMBERS), branch);
    assert_eq!(shapes(Next::MEMBERS), branch);
    let twig = [("branch", Shape::String), ("branches", Shape::Array), ("parent", Shape::Object)];
    assert_eq!(shapes(Twig::MEMBERS), twig);
}

/// What says of which type its items are.
trait Kind {
    type Item;
}

impl Kind for Socket {
    type Item = Port;
}

/// A list whose items are named by way of `Self`, which nothing beside the type can do.
#[derive(Serialize, Deserialize, Schema)]
struct Socket {
    #[koord(list_type = "map", list_map_key = "name")]
    ports: Vec<<Self as Kind>::Item>,
}

/// A list whose items borrow.
#[derive(Serialize, Deserialize, Schema)]
struct Labels<'a> {
    #[serde(borrow)]
    #[koord(list_type = "map", list_map_key = "key")]
    labels: Vec<Label<'a>>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Label<'a> {
    key: &'a str,
    #[koord(max_length = 8)]
    text: Text<'a>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Text<'a>(&'a str);

/// A list of some length, of something.
#[derive(Serialize, Deserialize, Schema)]
struct Shelf<T> {
    #[koord(list_type = "map", list_map_key = "one")]
    pairs: Vec<Pair<T>>,
    #[koord(list_type = "map", list_map_key = "name")]
    ports: Vec<Port>,
}

#[test]
fn lists_of_items_that_depend_on_the_type_compile() {
    let keys = |schema: koord_resource::schema::Schema, name: &str| schema.properties[name].list_map_keys.join(" ");
    assert_eq!(keys(Socket::schema(Emit::default()), "ports"), "name");
    assert_eq!(keys(Labels::schema(Emit::default()), "labels"), "key");
    assert_eq!(keys(<Shelf<String>>::schema(Emit::default()), "pairs"), "one");
    assert_eq!(keys(<Shelf<String>>::schema(Emit::default()), "ports"), "name");
}

/// A struct whose JSON is that of its field.
#[derive(Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(transparent)]
struct Depth {
    #[koord(maximum = 9, normalize = at_least_zero)]
    meters: i32,
}

fn at_least_zero(meters: &mut i32) {
    *meters = (*meters).max(0);
}

#[test]
fn a_transparent_struct_is_what_its_field_is() {
    let schema = serde_json::to_value(Depth::schema(Emit::default())).unwrap();
    let description = "A struct whose JSON is that of its field.";
    assert_eq!(schema, json!({"description": description, "type": "integer", "format": "int32", "maximum": 9}));
    assert_eq!(Depth::SHAPE, Shape::Integer);
    let mut depth: Depth = serde_json::from_value(json!(-1)).unwrap();
    depth.mutate();
    assert_eq!(serde_json::to_value(&depth).unwrap(), 0);
    assert_eq!((Depth { meters: 9 }.validate().len(), Depth { meters: 10 }.validate().len()), (0, 1));
}
