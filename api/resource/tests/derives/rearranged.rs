//! Fields that moved between objects, and fields that are no more.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Convert, Resource, Schema,
    convert::Conversion,
    declare::Profile,
    document::{Declared, custom_resource_definition},
};
use proptest::{option, prelude::*};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A web server whose fields were put into groups.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Convert)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
#[koord(column(name = "Count", type = "integer", path = ".spec.scaling.count"))]
#[koord(column(name = "Eviction", type = "string", path = ".spec.eviction.mode"))]
#[koord(column(name = "Legacy", type = "string", path = ".spec.legacy", until = "v1"))]
struct Web {
    metadata: ObjectMeta,
    spec: WebSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
#[koord(removed(since = "v1", name = "legacy", type = Option<String>, description = "How it was done."))]
#[koord(removed(since = "v1", added = "v1beta1", name = "mode", type = String, default = "Slow"))]
#[koord(validate(rule = "self.mode != 'None'", message = "must not be None", since = "v1beta1", until = "v1"))]
struct WebSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"), moved(since = "v1", from = "replicas", member = "count"))]
    scaling: Option<Scaling>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(moved(since = "v1", from = "limits.eviction"))]
    eviction: Option<Eviction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(moved(since = "v1", from = "burst", member = "burst"))]
    limits: Option<Limits>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Scaling {
    #[koord(changed(since = "v1", from = String, up = parse, down = print))]
    count: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Eviction {
    #[koord(renamed(since = "v1", from = "kind"))]
    mode: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
#[koord(removed(since = "v1", name = "note", type = Option<String>))]
struct Part {
    text: String,
}

#[expect(clippy::needless_pass_by_value, reason = "a translation takes the old value")]
fn parse(text: String) -> i32 {
    text.parse().unwrap_or_default()
}

fn print(number: i32) -> String {
    number.to_string()
}

const WEB: Conversion = Conversion::of::<Web>(&["v1beta1", "v1alpha1"]);

fn web(version: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Web", "metadata": {"name": "w"}, "spec": spec})
}

fn converted(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    WEB.convert(&mut object, to).unwrap();
    object
}

/// What is kept of the fields of `spec`.
fn kept(object: &Value) -> Value {
    let text = object["metadata"]["annotations"]["example.com/unconverted"].as_str().unwrap_or("{}");
    serde_json::from_str::<Value>(text).unwrap()["inside"]["spec"].clone()
}

#[test]
fn older_versions_have_fields_where_they_stood() {
    let newest = web(
        "v1",
        &json!({
            "scaling": {"count": 3, "max": 5}, "eviction": {"mode": "Soft"}, "limits": {"memory": 1, "burst": 2},
            "parts": [{"text": "a"}],
        }),
    );
    let expected = json!({
        "replicas": "3", "burst": 2, "limits": {"memory": 1, "eviction": {"kind": "Soft"}}, "parts": [{"text": "a"}],
    });
    let oldest = converted(&newest, "v1alpha1");
    assert_eq!(oldest["spec"], expected);
    assert_eq!(kept(&oldest), json!({"fields": {"scaling": {"max": 5}}}));
    let mut with_mode = expected;
    with_mode["mode"] = json!("Slow");
    assert_eq!(converted(&newest, "v1beta1")["spec"], with_mode);
    assert_eq!(converted(&oldest, "v1"), newest);
}

#[test]
fn what_the_newest_version_has_no_room_for_comes_back() {
    let older = web(
        "v1beta1",
        &json!({
            "replicas": "4", "legacy": "x", "mode": "Fast", "limits": {"eviction": {"kind": "Hard"}},
            "parts": [{"text": "a", "note": "n"}, {"text": "b"}],
        }),
    );
    let mut newest = converted(&older, "v1");
    assert_eq!(
        newest["spec"],
        json!({
            "scaling": {"count": 4}, "eviction": {"mode": "Hard"}, "limits": {},
            "parts": [{"text": "a"}, {"text": "b"}],
        })
    );
    assert_eq!(kept(&newest)["removed"], json!({"v1/legacy": "x", "v1/mode": "Fast"}));
    assert_eq!(kept(&newest)["inside"]["parts"]["items"][0]["removed"], json!({"v1/note": "n"}));
    assert_eq!(converted(&newest, "v1beta1"), older);
    newest["spec"]["parts"] = json!([{"text": "new"}, {"text": "b"}, {"text": "a"}]);
    let back = converted(&newest, "v1beta1");
    assert_eq!(back["spec"]["parts"], json!([{"text": "new"}, {"text": "b"}, {"text": "a", "note": "n"}]));
    let oldest = converted(&older, "v1alpha1");
    assert_eq!((&oldest["spec"]["legacy"], &oldest["spec"]["mode"]), (&json!("x"), &Value::Null));
    assert_eq!(converted(&oldest, "v1beta1"), older, "by way of a version that has one of them");
}

#[test]
fn an_object_that_was_made_for_a_moved_field_goes_with_it() {
    for (newest, older) in [
        (json!({"eviction": {"mode": "Soft"}}), json!({"mode": "Slow", "limits": {"eviction": {"kind": "Soft"}}})),
        (
            json!({"eviction": {"mode": "Soft"}, "limits": {}}),
            json!({"mode": "Slow", "limits": {"eviction": {"kind": "Soft"}}}),
        ),
        (json!({"limits": {"burst": 1}}), json!({"mode": "Slow", "limits": {}, "burst": 1})),
        (json!({"scaling": {"count": 1}}), json!({"mode": "Slow", "replicas": "1"})),
        (json!({"limits": {}}), json!({"mode": "Slow", "limits": {}})),
    ] {
        let newest = web("v1", &newest);
        assert_eq!(converted(&newest, "v1beta1")["spec"], older);
        assert_eq!(converted(&converted(&newest, "v1beta1"), "v1"), newest);
    }
    let older = web("v1beta1", &json!({"mode": "Slow", "burst": 1}));
    assert_eq!(converted(&older, "v1")["spec"], json!({"limits": {"burst": 1}}));
    assert_eq!(converted(&converted(&older, "v1"), "v1beta1"), older);
}

#[test]
fn an_older_value_that_is_wrong_is_named_where_it_belongs() {
    let mut wrong = web("v1beta1", &json!({"replicas": 4}));
    let error = WEB.convert(&mut wrong, "v1").unwrap_err();
    assert_eq!(error.to_string(), "/spec/scaling/count: invalid type: integer `4`, expected a string");
}

#[test]
fn schemas_and_columns_of_older_versions_name_the_former_places() {
    let newest = Declared::of::<Web>();
    let versions = [newest.older("v1alpha1"), newest.older("v1beta1"), newest];
    for version in versions {
        assert!(version.check(Profile::Compatible).is_empty(), "{}", version.info.version);
    }
    let document = custom_resource_definition(&versions, Profile::Compatible);
    let version = |index: usize| &document["spec"]["versions"][index];
    let spec = |index: usize| &version(index)["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let names = |node: &Value| -> String {
        let names: Vec<&str> = node["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        names.join(" ")
    };
    assert_eq!(names(spec(0)), "burst legacy limits parts replicas");
    assert_eq!(names(spec(1)), "burst legacy limits mode parts replicas");
    assert_eq!(names(spec(2)), "eviction limits parts scaling");
    assert_eq!((&spec(1)["required"], &spec(2)["required"]), (&json!(["replicas"]), &Value::Null));
    assert_eq!(names(&spec(1)["properties"]["limits"]), "eviction memory");
    assert_eq!(names(&spec(2)["properties"]["limits"]), "burst memory");
    assert_eq!(spec(1)["properties"]["replicas"]["type"], "string");
    assert_eq!(spec(1)["properties"]["mode"], json!({"type": "string", "default": "Slow"}));
    assert_eq!(spec(0)["properties"]["legacy"], json!({"type": "string", "description": "How it was done."}));
    let note = &json!({"type": "string"});
    let of_part = |index: usize| &spec(index)["properties"]["parts"]["items"]["properties"]["note"];
    assert_eq!((of_part(1), of_part(2)), (note, &Value::Null));
    let rules = |index: usize| spec(index)["x-kubernetes-validations"].as_array().map_or(0, Vec::len);
    assert_eq!((rules(0), rules(1), rules(2)), (0, 1, 0));
    let paths = |index: usize| -> Vec<&str> {
        let columns = version(index)["additionalPrinterColumns"].as_array().unwrap();
        columns.iter().filter_map(|column| column["jsonPath"].as_str()).collect()
    };
    assert_eq!(paths(1), [".spec.replicas", ".spec.limits.eviction.kind", ".spec.legacy"]);
    assert_eq!(paths(2), [".spec.scaling.count", ".spec.eviction.mode"]);
}

/// A field that moved out of what has no such field is found when the schema is built.
#[test]
fn a_member_that_does_not_exist_is_reported() {
    #[derive(Clone, Debug, Deserialize, Resource, Schema, Convert)]
    #[koord(group = "example.com", version = "v1", scope = "Cluster")]
    struct Odd {
        metadata: ObjectMeta,
        #[koord(moved(since = "v1", from = "count", member = "amount"))]
        scaling: Scaling,
    }
    let errors = Declared::of::<Odd>().older("v1beta1").check(Profile::Compatible);
    let expected = "`moved` names the field `amount` of `scaling`, which has none that is called so in JSON";
    assert!(errors.iter().any(|error| error.to_string().contains(expected)), "{errors:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_way_down_and_up_again_changes_nothing(spec in newest(), to in prop_oneof![Just("v1beta1"), Just("v1alpha1")]) {
        let object = web("v1", &spec);
        prop_assert_eq!(converted(&converted(&object, to), "v1"), object);
    }

    #[test]
    fn the_way_up_and_down_again_changes_nothing(spec in older()) {
        let object = web("v1beta1", &spec);
        prop_assert_eq!(&converted(&converted(&object, "v1"), "v1beta1"), &object);
        prop_assert_eq!(converted(&converted(&object, "v1alpha1"), "v1beta1"), object);
    }
}

fn parts(notes: bool) -> impl Strategy<Value = Value> {
    let note = option::of("[a-z]{1,2}").prop_map(move |note| note.filter(|_| notes));
    let part =
        ("[ab]{0,2}", note).prop_map(|(text, note)| with(json!({"text": text}), &[("note", note.map(Value::from))]));
    proptest::collection::vec(part, 0..4).prop_map(Value::from)
}

/// The object with those of the members that are there.
fn with(mut object: Value, members: &[(&str, Option<Value>)]) -> Value {
    for (name, value) in members {
        if let Some(value) = value {
            object[*name] = value.clone();
        }
    }
    object
}

fn newest() -> impl Strategy<Value = Value> {
    let number = || option::of(any::<i32>());
    (number(), number(), option::of("[a-z]{1,2}"), option::of((number(), number())), parts(false)).prop_map(
        |(count, max, mode, limits, parts)| {
            let max = max.map(Value::from);
            let scaling = count.map(|count| with(json!({"count": count}), &[("max", max)]));
            let eviction = mode.map(|mode| json!({"mode": mode}));
            let limits = limits.map(|(memory, burst)| {
                with(json!({}), &[("memory", memory.map(Value::from)), ("burst", burst.map(Value::from))])
            });
            with(json!({"parts": parts}), &[("scaling", scaling), ("eviction", eviction), ("limits", limits)])
        },
    )
}

fn older() -> impl Strategy<Value = Value> {
    let word = || option::of("[a-z]{1,2}");
    let number = || option::of(any::<i32>());
    (number(), word(), "[a-z]{1,2}", number(), option::of((number(), word())), parts(true)).prop_map(
        |(replicas, legacy, mode, burst, limits, parts)| {
            let limits = limits.map(|(memory, kind)| {
                let eviction = kind.map(|kind| json!({"kind": kind}));
                with(json!({}), &[("memory", memory.map(Value::from)), ("eviction", eviction)])
            });
            with(
                json!({"parts": parts, "mode": mode}),
                &[
                    ("replicas", replicas.map(|number| json!(number.to_string()))),
                    ("legacy", legacy.map(Value::from)),
                    ("burst", burst.map(Value::from)),
                    ("limits", limits),
                ],
            )
        },
    )
}
