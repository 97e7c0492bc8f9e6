//! Versions of one kind out of one declaration.

use std::collections::BTreeMap;

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
    milliseconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    owner: Option<Shard>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "map", list_map_key = "name")]
    shards: Vec<Shard>,
    #[serde(default)]
    notes: Notes,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    zones: BTreeMap<String, Vec<Note>>,
    #[serde(flatten)]
    place: Region,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Shard {
    #[koord(renamed(since = "v1beta1", from = "id"), renamed(since = "v1", from = "key"))]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1beta1"))]
    weight: Option<i32>,
    #[serde(default)]
    size: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Notes(Vec<Note>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Note {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    author: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Region {
    #[koord(renamed(since = "v1", from = "zone"))]
    region: Where,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
enum Where {
    Here,
    There,
}

#[expect(clippy::needless_pass_by_value, reason = "a translation takes the old value")]
fn parse(text: String) -> i64 {
    text.trim_end_matches('s').parse::<i64>().unwrap_or_default().saturating_mul(1000)
}

fn print(milliseconds: i64) -> String {
    format!("{}s", milliseconds / 1000)
}

const CACHE: Conversion = Conversion::of::<Cache>(&["v1beta1", "v1alpha1"]);

fn newest() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "c", "annotations": {"a": "b"}},
        "spec": {
            "megabytes": 5, "milliseconds": 30_500, "owner": {"name": "me", "weight": 1, "size": 0},
            "shards": [{"name": "x", "weight": 2, "size": 1}, {"name": "y", "size": 1}, {"name": "z", "weight": 3, "size": 1}],
            "notes": [{"text": "one", "author": "a"}, {"text": "two", "author": "b"}],
            "zones": {"e/w": [{"text": "one", "author": "c"}]},
            "region": "Here",
        },
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
    assert_eq!(
        oldest["spec"],
        json!({
            "size": 5, "milliseconds": "30s",
            "shards": [{"id": "x", "size": 1}, {"id": "y", "size": 1}, {"id": "z", "size": 1}],
            "notes": [{"text": "one"}, {"text": "two"}], "zones": {"e/w": [{"text": "one"}]}, "zone": "Here",
        })
    );
    let kept = oldest["metadata"]["annotations"]["example.com/unconverted"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(kept).unwrap()["inside"]["spec"],
        json!({
            "fields": {"owner": {"name": "me", "weight": 1, "size": 0}},
            "changed": {"v1/milliseconds": {"was": "30s", "value": 30_500}},
            "inside": {
                "shards": {"items": [{"is": ["x"], "fields": {"weight": 2}}, {"is": ["z"], "fields": {"weight": 3}}]},
                "notes": {"items": [
                    {"is": "487a4697f21887e8", "fields": {"author": "a"}}, {"is": "32fe85cc0ae504a6", "fields": {"author": "b"}},
                ]},
                "zones": {"inside": {"e/w": {"items": [{"is": "487a4697f21887e8", "fields": {"author": "c"}}]}}},
            },
        })
    );
    let middle = converted(&newest(), "v1beta1");
    assert_eq!(middle["spec"]["shards"][0], json!({"key": "x", "weight": 2, "size": 1}));
    assert_eq!(middle["spec"]["megabytes"], 5);
}

#[test]
fn what_an_older_client_could_not_see_comes_back_with_what_it_wrote() {
    let mut oldest = converted(&newest(), "v1alpha1");
    oldest["spec"]["size"] = json!(7);
    oldest["spec"]["shards"] = json!([{"id": "new", "size": 1}, {"id": "z", "size": 9}, {"id": "x", "size": 1}]);
    oldest["spec"]["notes"] = json!([{"text": "two"}, {"text": "three"}]);
    oldest["spec"]["zones"] = json!({"n": [{"text": "one"}], "e/w": [{"text": "one"}]});
    let back = converted(&oldest, "v1");
    assert_eq!(back["metadata"], newest()["metadata"]);
    assert_eq!(
        back["spec"],
        json!({
            "megabytes": 7, "milliseconds": 30_500, "owner": {"name": "me", "weight": 1, "size": 0},
            "shards": [{"name": "new", "size": 1}, {"name": "z", "weight": 3, "size": 9}, {"name": "x", "weight": 2, "size": 1}],
            "notes": [{"text": "two", "author": "b"}, {"text": "three"}],
            "zones": {"n": [{"text": "one"}], "e/w": [{"text": "one", "author": "c"}]},
            "region": "Here",
        })
    );
    oldest["spec"]["milliseconds"] = json!("31s");
    assert_eq!(converted(&oldest, "v1")["spec"]["milliseconds"], 31_000, "what the client changed is meant");
}

#[test]
fn a_damaged_annotation_restores_nothing() {
    for text in ["", "[]", "{\"inside\": 1}", "{\"inside\": {\"spec\": {\"fields\": {\"other\": 1}}}}"] {
        let mut oldest = converted(&newest(), "v1alpha1");
        oldest["metadata"]["annotations"]["example.com/unconverted"] = json!(text);
        let spec = &converted(&oldest, "v1")["spec"];
        assert_eq!(
            (&spec["owner"], &spec["other"], &spec["shards"][0]["weight"]),
            (&json!(null), &json!(null), &json!(null))
        );
    }
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
        let changed = spec["properties"]["milliseconds"]["type"].as_str().unwrap().to_owned();
        (version["name"].clone(), version["storage"].clone(), names.join(" "), changed)
    };
    let expected = [
        (json!("v1alpha1"), json!(false), "milliseconds notes shards size zone zones".to_owned(), "string".to_owned()),
        (
            json!("v1beta1"),
            json!(false),
            "megabytes milliseconds notes shards zone zones".to_owned(),
            "string".to_owned(),
        ),
        (
            json!("v1"),
            json!(true),
            "megabytes milliseconds notes owner region shards zones".to_owned(),
            "integer".to_owned(),
        ),
    ];
    assert_eq!(versions.iter().map(fields).collect::<Vec<_>>(), expected);
}

/// A kind whose rules, columns and scale name fields that older versions call otherwise.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Convert)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", status)]
#[koord(scale(spec = ".spec.pools[0].replicas", status = ".status.ready", selector = ".status.selector"))]
#[koord(column(name = "Owner", type = "string", path = ".spec.owner"))]
#[koord(column(name = "Name", type = "string", path = ".metadata.name"))]
#[koord(column(name = "Ready", type = "string", path = ".status.conditions[?(@.type=='Ready')].status"))]
#[koord(selectable(".spec.title"))]
struct Fleet {
    metadata: ObjectMeta,
    spec: FleetSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<FleetStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
#[koord(validate(rule = "self.title != ''", message = "must not be empty", since = "v1"))]
#[koord(validate(rule = "self.name != ''", message = "must not be empty", until = "v1"))]
#[koord(at_most_one_of("title", "owner", "alias"))]
struct FleetSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(renamed(since = "v1", from = "name"))]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    #[koord(changed(since = "v1", from = Option<String>, up = parsed, down = printed))]
    size: i64,
    #[koord(list_type = "map", list_map_key = "key")]
    pools: Vec<Pool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct Pool {
    #[koord(renamed(since = "v1", from = "id"))]
    key: String,
    #[koord(renamed(since = "v1", from = "count"))]
    replicas: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct FleetStatus {
    #[koord(renamed(since = "v1", from = "up"))]
    ready: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    selector: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(renamed(since = "v1", from = "states"))]
    conditions: Vec<BTreeMap<String, String>>,
}

fn parsed(text: Option<String>) -> i64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

#[expect(clippy::unnecessary_wraps, reason = "the older type is an Option")]
fn printed(size: i64) -> Option<String> {
    Some(size.to_string())
}

#[test]
fn rules_and_paths_name_what_a_version_calls_its_fields() {
    let newest = Declared::of::<Fleet>();
    let document = custom_resource_definition(&[newest.older("v1beta1"), newest], Profile::Compatible);
    let version = |index: usize| &document["spec"]["versions"][index];
    let spec = |index: usize| &version(index)["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let rules = |index: usize| -> Vec<&str> {
        let rules = spec(index)["x-kubernetes-validations"].as_array().unwrap();
        rules.iter().filter_map(|rule| rule["rule"].as_str()).collect()
    };
    let counted = "[has(self.title), has(self.owner), has(self.alias)].filter(set, set).size() <= 1";
    assert_eq!(rules(1), ["self.title != ''", counted]);
    assert_eq!(rules(0), ["self.name != ''", "[has(self.name), has(self.alias)].filter(set, set).size() <= 1"]);
    assert_eq!((&spec(0)["required"], &spec(1)["required"]), (&json!(["pools"]), &json!(["pools", "size"])));
    let keys = |index: usize| &spec(index)["properties"]["pools"]["x-kubernetes-list-map-keys"];
    assert_eq!((keys(0), keys(1)), (&json!(["id"]), &json!(["key"])));
    assert_eq!(
        version(0)["subresources"]["scale"],
        json!({"specReplicasPath": ".spec.pools[0].count", "statusReplicasPath": ".status.up"})
    );
    assert_eq!(version(1)["subresources"]["scale"]["specReplicasPath"], ".spec.pools[0].replicas");
    let paths = |index: usize| -> Vec<&str> {
        let columns = version(index)["additionalPrinterColumns"].as_array().unwrap();
        columns.iter().filter_map(|column| column["jsonPath"].as_str()).collect()
    };
    assert_eq!(paths(0), [".metadata.name", ".status.states[?(@.type=='Ready')].status"]);
    assert_eq!(paths(1)[0], ".spec.owner");
    assert_eq!(version(0)["selectableFields"], json!([{"jsonPath": ".spec.name"}]));
}

/// The newest version of a kind looks as it is declared, whatever its number.
#[test]
fn the_declared_version_has_what_came_with_it() {
    #[derive(Clone, Debug, Deserialize, Resource, Schema, Convert)]
    #[koord(group = "example.com", version = "v1alpha1", scope = "Cluster")]
    struct Early {
        metadata: ObjectMeta,
        spec: EarlySpec,
    }
    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convert)]
    struct EarlySpec {
        #[koord(renamed(since = "v1alpha1", from = "old"))]
        new: String,
        #[koord(renamed(since = "v1beta1", from = "former"))]
        later: String,
    }
    let document = custom_resource_definition(&[Declared::of::<Early>()], Profile::Compatible);
    let spec = &document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["later", "new"]));
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
    wrong["spec"]["milliseconds"] = json!("soon");
    let bad = review(json!([newest(), wrong]), "example.com/v1beta1");
    assert_eq!(bad["response"]["convertedObjects"], Value::Null);
    assert_eq!(bad["response"]["result"]["message"], "/spec/milliseconds: invalid type: string \"soon\", expected i64");
    let unknown = review(json!([newest()]), "example.com/v2");
    assert_eq!(
        unknown["response"]["result"]["message"],
        "no conversion of Cache from example.com/v1 to example.com/v2 is known"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_way_down_and_up_again_changes_nothing(cache in any_cache(), to in older()) {
        prop_assert_eq!(converted(&converted(&cache, to), "v1"), cache);
    }

    /// Whatever an older client does to lists, each value stays with what it was said of, or goes with it.
    #[test]
    fn edits_of_older_clients_move_no_value_to_another_item(
        cache in any_cache(),
        to in prop_oneof![Just("v1alpha1"), Just("v1beta1")],
        order in any::<u64>(),
        edits in proptest::collection::vec(0_u8..4, 6),
    ) {
        let mut older = converted(&cache, to);
        for (name, identity) in [("shards", None), ("notes", Some("text"))] {
            let Some(list) = older["spec"].get_mut(name).and_then(Value::as_array_mut) else { continue };
            for (index, edit) in edits.iter().enumerate().filter(|(index, _)| *index < 5) {
                match edit {
                    0 if index < list.len() => drop(list.remove(index)),
                    1 => list.insert(0, match identity {
                        Some(text) => json!({text: format!("NEW{index}")}),
                        None if to == "v1alpha1" => json!({"id": format!("NEW{index}"), "size": 0}),
                        None => json!({"key": format!("NEW{index}"), "size": 0}),
                    }),
                    2 if index < list.len() && identity.is_none() => list[index]["size"] = json!(77),
                    _ => {}
                }
            }
            list.sort_by_key(|item| {
                item.to_string().bytes().fold(order, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
            });
        }
        let back = converted(&older, "v1");
        let was = |list: &str, key: &str, item: &Value, hidden: &str| -> Vec<Value> {
            let items = cache["spec"][list].as_array().into_iter().flatten();
            items.filter(|was| was[key] == item[key]).map(|was| was[hidden].clone()).collect()
        };
        for shard in back["spec"]["shards"].as_array().into_iter().flatten() {
            let was = was("shards", "name", shard, "weight");
            prop_assert_eq!(&shard["weight"], was.first().unwrap_or(&Value::Null), "{}", back);
        }
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        for note in back["spec"]["notes"].as_array().into_iter().flatten() {
            let was = was("notes", "text", note, "author");
            let nth = used.entry(note["text"].to_string()).or_default();
            prop_assert_eq!(&note["author"], was.get(*nth).unwrap_or(&Value::Null), "{}", back);
            *nth += 1;
        }
    }
}

fn older() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("v1alpha1"), Just("v1beta1"), Just("v1")]
}

fn any_cache() -> impl Strategy<Value = Value> {
    let shard = |name: String| {
        (option::of(any::<i32>()), any::<u8>()).prop_map(move |(weight, size)| Shard {
            name: name.clone(),
            weight,
            size,
        })
    };
    let shards = proptest::collection::btree_set("[a-z]{1,2}", 0..5)
        .prop_flat_map(move |names| names.into_iter().map(shard).collect::<Vec<_>>())
        .prop_shuffle();
    let note = ("[ab~/]{0,2}", option::of("[a-z]{1,2}")).prop_map(|(text, author)| Note { text, author });
    let notes = proptest::collection::vec(note, 0..5);
    let owner = option::of((option::of(any::<i32>()), any::<u8>()));
    let region = prop_oneof![Just(Where::Here), Just(Where::There)];
    (any::<i32>(), any::<i64>(), owner, shards, notes.clone(), notes, region).prop_map(
        |(megabytes, milliseconds, owner, shards, notes, zone, region)| {
            let owner = owner.map(|(weight, size)| Shard { name: "o".to_owned(), weight, size });
            let zones = if zone.is_empty() { BTreeMap::new() } else { BTreeMap::from([("z".to_owned(), zone)]) };
            let place = Region { region };
            let spec = CacheSpec { megabytes, milliseconds, owner, shards, notes: Notes(notes), zones, place };
            serde_json::to_value(&Cache { metadata: ObjectMeta::default(), spec }).unwrap()
        },
    )
}
