//! The rules in Rust and the rules in the schema say the same about the same object, word for word.
//!
//! Only where the API server stops at the first mistake of a text, or does not look into a map that is too large, does
//! Rust go on and name the others too.

use std::collections::BTreeMap;

use koord_resource::{
    Schema, Validate,
    declare::Emit,
    field::{Errors, FieldError, Path},
    schema::structural::validate::validate,
};
use proptest::{collection, option, prelude::*};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
struct Everything {
    #[koord(minimum = -2, maximum = 5)]
    count: i32,
    #[koord(minimum = 0, exclusive_minimum, maximum = 4, exclusive_maximum, multiple_of = 2)]
    even: i64,
    #[koord(minimum = 0.5, maximum = 2.5)]
    ratio: f64,
    #[koord(min_length = 2, max_length = 4, pattern = "^[a-c]*$")]
    name: String,
    #[koord(format = "ipv4")]
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(enumeration("a", "bb"))]
    word: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(min_items = 2, max_items = 3, items(maximum = 2, minimum = 0))]
    numbers: Vec<i32>,
    #[koord(min_properties = 1, max_properties = 2)]
    parts: BTreeMap<String, Part>,
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    #[serde(flatten)]
    more: Part,
    table: Vec<Vec<Part>>,
    #[koord(min_length = 1)]
    label: Label,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Validate)]
struct Part {
    #[koord(minimum = 1)]
    size: u8,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Validate)]
#[koord(max_length = 2)]
struct Label(String);

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Validate)]
enum Mode {
    Now,
    Later,
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
enum Target {
    Local(Part),
    Remote {
        #[koord(max_length = 1)]
        host: String,
    },
}

fn part() -> impl Strategy<Value = Part> {
    (0u8..3).prop_map(|size| Part { size })
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Now), Just(Mode::Later), "[A-Z]{1,2}".prop_map(Mode::Other)]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![part().prop_map(Target::Local), "[a-z]{0,2}".prop_map(|host| Target::Remote { host })]
}

fn everything() -> impl Strategy<Value = Everything> {
    let numbers = (-4i32..8, -1i64..6, (0i32..7).prop_map(|half| f64::from(half) / 2.0));
    let texts = (
        "[a-d\u{e9}]{0,5}",
        option::of("[ab]{1,2}"),
        "[a-z]{0,3}".prop_map(Label),
        "(10[.]0[.]0[.][0-9]{1,3}|[0-9\n]{0,3})",
    );
    let lists = (
        collection::vec(-1i32..4, 0..5),
        collection::btree_map("[a-z]{1,2}", part(), 0..4),
        collection::vec(collection::vec(part(), 0..2), 0..3),
    );
    (numbers, texts, lists, mode(), option::of(target()), part()).prop_map(
        |((count, even, ratio), (name, word, label, address), (numbers, parts, table), mode, target, more)| {
            Everything { count, even, ratio, name, address, word, numbers, parts, mode, target, more, table, label }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rust_and_schema_say_the_same(object in everything()) {
        let by_schema = validate(&Everything::schema(Emit::default()), &serde_json::to_value(&object).unwrap());
        let mut by_rust = Errors::new();
        object.validate_schema(&Path::root(""), &mut by_rust);
        prop_assert_eq!(by_rust.is_empty(), by_schema.is_empty(), "{} / {}", by_rust, by_schema);
        for error in &by_schema {
            prop_assert!(by_rust.iter().any(|other| other == error), "Rust misses {}: {}", error, by_rust);
        }
        for error in by_rust.iter().filter(|error| !by_schema.iter().any(|other| other == *error)) {
            let stopped = |other: &FieldError| {
                error.field.strip_prefix(&other.field).is_some_and(|below| below.is_empty() || below.starts_with('.'))
            };
            prop_assert!(by_schema.iter().any(stopped), "the schema does not know {}: {}", error, by_schema);
        }
    }
}
