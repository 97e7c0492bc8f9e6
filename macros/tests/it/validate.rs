//! Rules and defaults in Rust.

use std::collections::BTreeMap;

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
