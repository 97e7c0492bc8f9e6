//! Whatever a patch and a pod say, the prepared patch changes the pod as the general merge does, or both refuse.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use koord_profile::{Excerpt, Overlay};
use koord_resource::admission::Patch;
use koord_schema::patch::json;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

fn object(entries: Vec<(&'static str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn scalar() -> impl Strategy<Value = Value> {
    select(vec![json!(null), json!(true), json!(1), json!(1.5), json!("a"), json!("b\n"), json!("")])
}

/// Maps and lists of scalars and of each other, a little odd, with directives now and then.
fn anything() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(2, 8, 3, |inner| {
        let names = select(vec!["x", "y", "name", "key", "value", "env", "$patch", "$retainKeys"]);
        prop_oneof![vec((names, inner.clone()), 0..3).prop_map(object), vec(inner, 0..3).prop_map(Value::Array)]
    })
}

fn keyed(key: &'static str, more: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let value = select(vec![json!("a"), json!("b"), json!("c"), json!(80), json!(81), json!("\u{e9}\"")]);
    let directive = option::weighted(0.05, select(vec![json!("delete"), json!("replace"), json!("merge")]));
    let item = (option::weighted(0.97, value), vec((select(more), anything()), 0..3), directive);
    let item = item.prop_map(move |(identity, fields, directive)| {
        let mut item = object(fields);
        item.as_object_mut().unwrap().extend(identity.map(|identity| (key.to_owned(), identity)));
        item.as_object_mut().unwrap().extend(directive.map(|directive| ("$patch".to_owned(), directive)));
        item
    });
    vec(item, 0..4).prop_map(Value::Array)
}

fn containers() -> impl Strategy<Value = Value> {
    let names = || select(vec![json!("a"), json!("b"), json!("c")]);
    let env = option::of(keyed("name", &["value"]));
    let ports = option::of(keyed("containerPort", &["protocol", "hostPort"]));
    let item = (names(), option::of(scalar()), env, ports).prop_map(|(name, image, env, ports)| {
        let fields = [("image", image), ("env", env), ("ports", ports)];
        let present = fields.into_iter().filter_map(|(field, value)| Some((field, value?)));
        object(present.chain([("name", name)]).collect())
    });
    vec(item, 0..3).prop_map(Value::Array)
}

fn field() -> impl Strategy<Value = (&'static str, Value)> {
    let names = vec(select(vec![json!("x"), json!("y"), json!("z"), json!(1)]), 0..3).prop_map(Value::Array);
    prop_oneof![
        (select(vec!["hostNetwork", "dnsPolicy", "nodeSelector", "affinity", "tolerations"]), anything()),
        containers().prop_map(|containers| ("containers", containers)),
        keyed("name", &["emptyDir", "configMap"]).prop_map(|volumes| ("volumes", volumes)),
        names.prop_map(|names| ("finalizers", names)),
        anything().prop_map(|odd| ("volumes", odd)),
    ]
}

fn whole() -> impl Strategy<Value = Value> {
    let part = || option::weighted(0.9, vec(field(), 0..5).prop_map(object));
    (part(), part()).prop_map(|(metadata, spec)| {
        object(
            [("metadata", metadata), ("spec", spec)]
                .into_iter()
                .filter_map(|(name, part)| Some((name, part?)))
                .collect(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_prepared_patch_does_what_the_general_merge_does(pod in whole(), change in whole()) {
        let overlay = Overlay::new(&change);
        prop_assume!(overlay.is_apart_from(&Excerpt::Fields(Vec::new())));
        let mut written = Patch::default();
        let outcome = overlay.write(&pod.to_string(), &mut written);
        match overlay.merge(pod.clone()) {
            Ok(merged) => {
                outcome.unwrap();
                let operations = serde_json::from_slice(written.as_bytes()).unwrap_or_else(|_| json!([]));
                prop_assert_eq!(json::apply(pod, &operations).unwrap(), merged, "{:?}", written);
            }
            Err(error) => prop_assert_eq!(outcome.map_err(|refused| refused.to_string()), Err(error.to_string())),
        }
    }
}
