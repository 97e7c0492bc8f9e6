//! Laws that hold for every object, on generated ones.

use koord_schema::{
    Schema,
    fieldset::{self, FieldSet, Step},
    patch::{json, merge},
    structural::{defaults, prune, validate_object},
    typed::SchemaNode,
};
use proptest::{collection, option, prelude::*};
use serde_json::{Map, Value, json};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-5i64..100).prop_map(Value::from),
        prop_oneof![Just("a"), Just("b"), Just("a/b"), Just("~x"), Just("")].prop_map(Value::from),
    ]
}

fn document(with_nulls: bool) -> impl Strategy<Value = Value> {
    let leaf = if with_nulls { prop_oneof![scalar(), Just(Value::Null)].boxed() } else { scalar().boxed() };
    let tree = leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            collection::btree_map(name(), inner, 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    collection::btree_map(name(), tree, 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c/d"), Just("e~f"), Just("spec")].prop_map(str::to_owned)
}

/// A schema with a bit of everything, and objects that fit it more or less.
fn schema() -> Schema {
    serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "n": {"type": "integer", "minimum": 0, "default": 1},
        "s": {"type": "string", "maxLength": 1, "enum": ["a", "b", ""]},
        "q": {"x-kubernetes-int-or-string": true, "nullable": true},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "atomic": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 7}}}},
    }}}}))
    .unwrap()
}

fn keyed_item() -> impl Strategy<Value = Value> {
    (prop_oneof![Just("x"), Just("y"), Just("z")], option::of(0i64..9)).prop_map(|(key, value)| match value {
        Some(value) => json!({"k": key, "v": value}),
        None => json!({"k": key}),
    })
}

fn unique(items: Vec<Value>, key: impl Fn(&Value) -> String) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    items.into_iter().filter(|item| seen.insert(key(item))).collect()
}

/// Objects of the schema's types.
fn fitting() -> impl Strategy<Value = Value> {
    let part = |value: BoxedStrategy<Value>| option::of(value);
    (
        part((0i64..9).prop_map(Value::from).boxed()),
        part(prop_oneof![Just(json!("a")), Just(json!(""))].boxed()),
        part(
            collection::btree_map(name(), (0i64..9).prop_map(Value::from), 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
                .boxed(),
        ),
        part(document(false).boxed()),
        part(collection::vec(0i64..9, 0..3).prop_map(Value::from).boxed()),
        part(
            collection::vec(prop_oneof![Just("p"), Just("q"), Just("r")], 0..3)
                .prop_map(|items| Value::from(unique(items.into_iter().map(Value::from).collect(), Value::to_string)))
                .boxed(),
        ),
        part(
            collection::vec(keyed_item(), 0..4)
                .prop_map(|items| Value::from(unique(items, |item| item["k"].to_string())))
                .boxed(),
        ),
    )
        .prop_map(|(n, s, m, free, atomic, set, list)| {
            let parts =
                [("n", n), ("s", s), ("m", m), ("free", free), ("atomic", atomic), ("set", set), ("list", list)];
            let spec: Map<String, Value> =
                parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
            json!({"spec": spec})
        })
}

fn field_set() -> impl Strategy<Value = FieldSet> {
    collection::vec(collection::vec(prop_oneof![Just("a"), Just("b"), Just("c")], 1..4), 0..8).prop_map(|paths| {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&path.into_iter().map(Step::field).collect::<Vec<_>>());
        }
        set
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_merge_patch_carries_the_difference(old in document(false), new in document(false)) {
        match merge::diff(&old, &new) {
            None => prop_assert_eq!(old, new),
            Some(patch) => {
                prop_assert_ne!(&old, &new);
                prop_assert_eq!(merge::apply(old, &patch), new);
            }
        }
    }

    #[test]
    fn a_merge_patch_leaves_no_difference(old in document(true), new in document(false)) {
        if let Some(patch) = merge::diff(&old, &new) {
            prop_assert_eq!(merge::diff(&merge::apply(old, &patch), &new), None);
        }
    }

    #[test]
    fn no_patch_breaks_anything(document_ in document(true), patch in collection::vec(document(true), 0..4)) {
        let _ = json::apply(document_.clone(), &Value::from(patch.clone()));
        let _ = merge::apply(document_, &Value::from(patch));
    }

    #[test]
    fn pruning_and_defaulting_settle_at_once(object in document(true), fit in fitting()) {
        let schema = schema();
        for mut once in [object, fit] {
            defaults::apply(&schema, &mut once);
            defaults::drop_needless_nulls(&schema, &mut once);
            prune::prune(&schema, &mut once);
            let verdict = validate_object(&schema, &once, None).to_string();
            let mut twice: Value = serde_json::from_str(&once.to_string()).unwrap();
            defaults::apply(&schema, &mut twice);
            defaults::drop_needless_nulls(&schema, &mut twice);
            prop_assert!(prune::prune(&schema, &mut twice).is_empty());
            prop_assert_eq!(&once, &twice);
            prop_assert_eq!(validate_object(&schema, &twice, None).to_string(), verdict);
            prop_assert!(validate_object(&schema, &twice, Some(&once)).is_empty(), "what did not change passes");
        }
    }

    #[test]
    fn fitting_objects_are_valid(mut object in fitting()) {
        let schema = schema();
        defaults::apply(&schema, &mut object);
        prop_assert_eq!(validate_object(&schema, &object, None).to_string(), "[]");
    }

    #[test]
    fn field_sets_obey_their_algebra(a in field_set(), b in field_set(), c in field_set()) {
        prop_assert_eq!(a.clone().union(&b), b.clone().union(&a));
        prop_assert_eq!(a.clone().union(&b).union(&c), a.clone().union(&b.clone().union(&c)));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert_eq!(a.intersection(&b.clone().union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        prop_assert_eq!(FieldSet::from_json(&a.to_json()), Ok(a.clone()));
        prop_assert!(a.difference_below(&b).difference(&a).is_empty());
    }

    #[test]
    fn a_comparison_finds_exactly_what_changed(old in fitting(), new in fitting()) {
        let schema = schema();
        let node = SchemaNode::of_object(&schema);
        let found = fieldset::compare(&old, &new, &node);
        let nothing = found.added.is_empty() && found.removed.is_empty() && found.modified.is_empty();
        let order_only = fieldset::compare(&new, &old, &node);
        prop_assert_eq!(&found.added, &order_only.removed);
        prop_assert_eq!(&found.modified, &order_only.modified);
        if old == new {
            prop_assert!(nothing);
        }
    }

    #[test]
    fn what_is_applied_is_in_the_merged_object(live in fitting(), applied in fitting()) {
        let schema = schema();
        let node = SchemaNode::of_object(&schema);
        let merged = fieldset::merge(&live, &applied, &node);
        let missing = fieldset::compare(&merged, &applied, &node);
        prop_assert!(missing.added.is_empty() && missing.modified.is_empty(), "{:?}", missing);
        prop_assert_eq!(fieldset::merge(&merged, &applied, &node), merged);
    }
}
