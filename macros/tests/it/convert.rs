//! Versions of one kind out of one declaration.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Convert, Resource, Schema,
    convert::{Conversion, answer},
    declare::Profile,
    document::{Declared, custom_resource_definition},
};
use proptest::{option, prelude::*};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A cache.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Convert)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
struct Cache {
    metadata: ObjectMeta,
    spec: CacheSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
#[serde(rename_all = "camelCase")]
struct CacheSpec {
    #[koord(renamed(since = "v1beta1", from = "size"))]
    megabytes: i32,
    #[koord(changed(since = "v1", from = String, up = parse, down = print))]
    seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    owner: Option<String>,
    #[serde(default)]
    shards: Vec<Shard>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Shard {
    #[koord(renamed(since = "v1beta1", from = "id"), renamed(since = "v1", from = "key"))]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1beta1"))]
    weight: Option<i32>,
}

#[expect(clippy::needless_pass_by_value, reason = "a translation takes the old value")]
fn parse(text: String) -> i64 {
    text.trim_end_matches('s').parse().unwrap_or_default()
}

fn print(seconds: i64) -> String {
    format!("{seconds}s")
}

const CACHE: Conversion = Conversion::of::<Cache>(&["v1beta1", "v1alpha1"]);

fn newest() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "c", "annotations": {"a": "b"}},
        "spec": {"megabytes": 5, "seconds": 30, "owner": "me", "shards": [{"name": "x", "weight": 2}, {"name": "y"}]},
    })
}

fn converted(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    CACHE.convert(&mut object, to).unwrap();
    object
}

#[test]
fn an_older_version_looks_as_it_did() {
    let oldest = converted(&newest(), "v1alpha1");
    assert_eq!(oldest["apiVersion"], "example.com/v1alpha1");
    assert_eq!(oldest["spec"], json!({"size": 5, "seconds": "30s", "shards": [{"id": "x"}, {"id": "y"}]}));
    assert_eq!(
        oldest["metadata"]["annotations"]["example.com/unconverted"],
        r#"{"/spec/owner":"me","/spec/shards/0/weight":2}"#
    );
    let middle = converted(&newest(), "v1beta1");
    assert_eq!(
        middle["spec"],
        json!({"megabytes": 5, "seconds": "30s", "shards": [{"key": "x", "weight": 2}, {"key": "y"}]})
    );
}

#[test]
fn what_an_older_client_could_not_see_comes_back_with_what_it_wrote() {
    let mut oldest = converted(&newest(), "v1alpha1");
    oldest["spec"]["size"] = json!(7);
    oldest["spec"]["shards"] = json!([{"id": "z"}]);
    assert_eq!(
        converted(&oldest, "v1"),
        json!({
            "apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "c", "annotations": {"a": "b"}},
            "spec": {"megabytes": 7, "seconds": 30, "owner": "me", "shards": [{"name": "z", "weight": 2}]},
        })
    );
}

#[test]
fn every_version_has_its_own_schema() {
    let newest = Declared::of::<Cache>();
    let document =
        custom_resource_definition(&[newest.older("v1alpha1"), newest.older("v1beta1"), newest], Profile::Compatible);
    let versions = document["spec"]["versions"].as_array().unwrap();
    let fields = |version: &Value| {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let names: Vec<String> = spec["properties"].as_object().unwrap().keys().cloned().collect();
        let seconds = spec["properties"]["seconds"]["type"].as_str().unwrap().to_owned();
        (version["name"].clone(), version["storage"].clone(), names.join(" "), seconds)
    };
    let expected = [
        (json!("v1alpha1"), json!(false), "seconds shards size".to_owned(), "string".to_owned()),
        (json!("v1beta1"), json!(false), "megabytes seconds shards".to_owned(), "string".to_owned()),
        (json!("v1"), json!(true), "megabytes owner seconds shards".to_owned(), "integer".to_owned()),
    ];
    assert_eq!(versions.iter().map(fields).collect::<Vec<_>>(), expected);
}

#[test]
fn a_review_is_answered_whole_or_not_at_all() {
    let review = |objects: Value, wanted: &str| {
        let request = json!({"uid": "u", "desiredAPIVersion": wanted, "objects": objects});
        answer(
            &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}),
            &[CACHE],
        )
    };
    let good = review(json!([newest(), newest()]), "example.com/v1beta1");
    assert_eq!((&good["response"]["uid"], &good["response"]["result"]["status"]), (&json!("u"), &json!("Success")));
    assert_eq!(good["response"]["convertedObjects"][1]["spec"]["shards"][0]["key"], "x");
    let mut wrong = newest();
    wrong["spec"]["seconds"] = json!("soon");
    let bad = review(json!([newest(), wrong]), "example.com/v1beta1");
    assert_eq!(bad["response"]["convertedObjects"], Value::Null);
    assert_eq!(bad["response"]["result"]["message"], "/spec/seconds: invalid type: string \"soon\", expected i64");
    let unknown = review(json!([newest()]), "example.com/v2");
    assert_eq!(
        unknown["response"]["result"]["message"],
        "no conversion of Cache from example.com/v1 to example.com/v2 is known"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_way_down_and_up_again_changes_nothing(
        megabytes in any::<i32>(),
        seconds in any::<i64>(),
        owner in option::of("[a-z/~]{0,4}"),
        shards in proptest::collection::vec(("[a-z]{1,3}", option::of(any::<i32>())), 0..4),
        to in prop_oneof![Just("v1alpha1"), Just("v1beta1"), Just("v1")],
    ) {
        let shards = shards.into_iter().map(|(name, weight)| Shard { name, weight }).collect();
        let cache = Cache { metadata: ObjectMeta::default(), spec: CacheSpec { megabytes, seconds, owner, shards } };
        let object = serde_json::to_value(&cache).unwrap();
        prop_assert_eq!(converted(&converted(&object, to), "v1"), object);
    }
}
