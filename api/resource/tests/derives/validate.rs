//! Rules and defaults in Rust.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::{
    Mutate, Schema, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase", default)]
#[koord(at_most_one_of("label", "mode"), check(whole), check_update(no_less))]
struct Spec {
    #[koord(minimum = 0, maximum = 10)]
    count: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(min_length = 2, check(no_spaces), admission(immutable))]
    label: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[koord(min_items = 2, items(min_length = 1), admission(unique_items))]
    names: Vec<String>,
    #[koord(not_empty, admission(max_properties = 1))]
    parts: BTreeMap<String, Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = "Later", normalize = trim)]
    mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default_fn = twice)]
    limit: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
enum Mode {
    Now,
    Later,
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[koord(normalize = round)]
struct Part {
    #[koord(minimum = 1)]
    size: i64,
}

fn no_spaces(label: &str, at: &Path<'_>, errors: &mut Errors) {
    if label.contains(' ') {
        errors.invalid(at, label, "no spaces");
    }
}

fn whole(spec: &Spec, at: &Path<'_>, errors: &mut Errors) {
    if spec.count == 7 {
        errors.forbidden(&at.child("count"), "not seven");
    }
}

fn no_less(new: &Spec, old: &Spec, at: &Path<'_>, errors: &mut Errors) {
    if new.count < old.count {
        errors.invalid(&at.child("count"), new.count, "may only grow");
    }
}

fn trim(mode: &mut Option<Mode>) {
    if let Some(Mode::Other(word)) = mode {
        *word = word.trim().to_owned();
    }
}

fn twice(spec: &Spec) -> i32 {
    spec.count.saturating_mul(2)
}

fn round(part: &mut Part) {
    part.size -= part.size % 10;
}

fn parts(sizes: &[(&str, i64)]) -> BTreeMap<String, Part> {
    sizes.iter().map(|(name, size)| ((*name).to_owned(), Part { size: *size })).collect()
}

fn schema_errors(spec: &Spec) -> Vec<String> {
    let mut errors = Errors::new();
    spec.validate_schema(&Path::root("spec"), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

fn admission_errors(spec: &Spec) -> Vec<String> {
    let mut errors = Errors::new();
    spec.validate_admission(&Path::root("spec"), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_of_the_schema_are_checked_where_a_value_is_present() {
    assert_eq!(schema_errors(&Spec { count: 3, ..Spec::default() }), [""; 0]);
    let spec = Spec {
        count: 11,
        label: Some("x".to_owned()),
        names: vec![String::new()],
        parts: parts(&[("a", 0)]),
        mode: Some(Mode::Other("Never".to_owned())),
        limit: None,
    };
    assert_eq!(
        schema_errors(&spec),
        [
            "spec.count: Invalid value: 11: spec.count in body should be less than or equal to 10",
            "spec.label: Invalid value: \"x\": spec.label in body should be at least 2 chars long",
            "spec.names: Invalid value: 1: spec.names in body should have at least 2 items",
            "spec.names[0]: Invalid value: \"\": spec.names[0] in body should be at least 1 chars long",
            "spec.parts.a.size: Invalid value: 0: spec.parts.a.size in body should be greater than or equal to 1",
            "spec.mode: Unsupported value: \"Never\": supported values: \"Now\", \"Later\"",
            "spec: Invalid value: {}: at most one of label, mode must be set",
        ]
    );
}

#[test]
fn rules_of_admission_stand_beside_them() {
    let spec = Spec {
        count: 7,
        label: Some("a b".to_owned()),
        names: vec!["n".to_owned(), "n".to_owned()],
        ..Spec::default()
    };
    assert_eq!(
        admission_errors(&spec),
        [
            "spec.label: Invalid value: \"a b\": no spaces",
            "spec.names[1]: Duplicate value: \"n\"",
            "spec.parts: Required value: must not be empty",
            "spec.count: Forbidden: not seven",
        ]
    );
    assert_eq!(
        admission_errors(&Spec { parts: parts(&[("a", 1), ("b", 1)]), ..Spec::default() }),
        ["spec.parts: Too many: 2: must have at most 1 item"]
    );
}

#[test]
fn changes_are_compared_with_the_old_object() {
    let old = Spec { count: 3, label: Some("one".to_owned()), ..Spec::default() };
    let new = Spec { count: 2, label: None, ..Spec::default() };
    let mut errors = Errors::new();
    new.validate_update(&old, &Path::root("spec"), &mut errors);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["spec.label: Invalid value: null: field is immutable", "spec.count: Invalid value: 2: may only grow"]
    );
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(default, rename_all = "camelCase")]
struct Fleet {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(list_type = "map", list_map_key = "name", list_map_key = "zone")]
    ships: Option<Vec<Arc<Ship>>>,
    #[koord(list_type = "map", list_map_key = "name", admission(items(immutable)))]
    flags: Vec<BTreeMap<String, String>>,
    by_name: BTreeMap<String, Ship>,
    ports: Ports,
    #[serde(skip_serializing_if = "Option::is_none")]
    cargo: Option<Cargo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[koord(list_type = "map", list_map_key = "name")]
struct Ports(Vec<Ship>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(default)]
struct Ship {
    #[koord(default = "")]
    name: String,
    #[koord(default = "")]
    zone: String,
    #[koord(admission(immutable))]
    length: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate)]
enum Cargo {
    Coal {
        #[koord(admission(immutable))]
        tons: i32,
    },
    Post(Ship),
}

fn ship(name: &str, zone: &str, length: i32) -> Ship {
    Ship { name: name.to_owned(), zone: zone.to_owned(), length }
}

fn changes(new: &Fleet, old: &Fleet) -> Vec<String> {
    let mut errors = Errors::new();
    new.validate_update(old, &Path::root("spec"), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_old_item_is_found_by_its_keys_wherever_it_stands() {
    let ships = |ships: &[(&str, &str, i32)]| {
        let ships = ships.iter().map(|(name, zone, length)| Arc::new(ship(name, zone, *length)));
        Fleet { ships: Some(ships.collect()), ..Fleet::default() }
    };
    let old = ships(&[("a", "x", 1), ("a", "y", 2), ("b", "x", 3)]);
    assert_eq!(changes(&ships(&[("b", "x", 3), ("a", "y", 2), ("a", "x", 1)]), &old), [""; 0], "another order");
    assert_eq!(changes(&ships(&[("c", "x", 9), ("a", "y", 2)]), &old), [""; 0], "one comes, two go");
    assert_eq!(
        changes(&ships(&[("b", "x", 3), ("a", "x", 2), ("a", "y", 2)]), &old),
        ["spec.ships[1].length: Invalid value: 2: field is immutable"]
    );
    assert_eq!(changes(&Fleet::default(), &old), [""; 0]);
}

#[test]
fn changes_are_followed_into_items_maps_newtypes_and_variants() {
    let flag = |name: &str, colour: &str| {
        BTreeMap::from([("name".to_owned(), name.to_owned()), ("colour".to_owned(), colour.to_owned())])
    };
    let old = Fleet {
        flags: vec![flag("a", "red"), flag("b", "blue")],
        by_name: BTreeMap::from([("one".to_owned(), ship("a", "", 1))]),
        ports: Ports(vec![ship("p", "", 1), ship("q", "", 2)]),
        cargo: Some(Cargo::Coal { tons: 1 }),
        ..Fleet::default()
    };
    let moved = Fleet { flags: old.flags.iter().rev().cloned().collect(), ..old.clone() };
    assert_eq!(changes(&moved, &old), [""; 0]);
    let new = Fleet {
        flags: vec![flag("b", "green"), flag("c", "red")],
        by_name: BTreeMap::from([("one".to_owned(), ship("a", "", 2)), ("two".to_owned(), ship("a", "", 2))]),
        ports: Ports(vec![ship("q", "", 1)]),
        cargo: Some(Cargo::Coal { tons: 2 }),
        ..Fleet::default()
    };
    assert_eq!(
        changes(&new, &old),
        [
            "spec.flags[0]: Invalid value: {\"colour\":\"green\",\"name\":\"b\"}: field is immutable",
            "spec.byName.one.length: Invalid value: 2: field is immutable",
            "spec.ports[0].length: Invalid value: 1: field is immutable",
            "spec.cargo.Coal.tons: Invalid value: 2: field is immutable",
        ]
    );
    let post = |length| Fleet { cargo: Some(Cargo::Post(ship("", "", length))), ..Fleet::default() };
    assert_eq!(changes(&post(2), &post(1)), ["spec.cargo.Post.length: Invalid value: 2: field is immutable"]);
    assert_eq!(
        changes(&Fleet { cargo: post(2).cargo, ..old.clone() }, &old),
        [""; 0],
        "another variant is a new value"
    );
}

#[test]
fn defaults_are_filled_in_and_values_normalised() {
    let mut spec = Spec { count: 4, parts: parts(&[("a", 17)]), ..Spec::default() };
    spec.mutate();
    assert_eq!((spec.mode.clone(), spec.limit, spec.parts["a"].size), (Some(Mode::Later), Some(8), 10));
    let before = spec.clone();
    spec.mutate();
    assert_eq!(spec, before);
    let mut given = Spec { mode: Some(Mode::Other(" Soon ".to_owned())), limit: Some(1), ..Spec::default() };
    given.mutate();
    assert_eq!((given.mode, given.limit), (Some(Mode::Other("Soon".to_owned())), Some(1)));
}
