//! How the versions of a kind are shown and served.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Convert, Resource, Schema, Validate,
    convert::Conversion,
    declare::{Emit, Profile},
    document::{Declared, WebhookService, converted_resource_definition, custom_resource_definition, reference_page},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A pool, which got a status with its second version and is still stored in the first.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Convert)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", status(since = "v1beta1"))]
#[koord(scale(spec = ".spec.size", status = ".status.size", selector = ".status.selector", since = "v1"))]
#[koord(scale(spec = ".spec.size", status = ".status.size", since = "v1beta1", until = "v1"))]
#[koord(column(name = "Size", type = "integer", path = ".spec.size"))]
#[koord(column(name = "Host", type = "string", path = ".spec.host", since = "v1beta1"))]
#[koord(column(name = "Mode", type = "string", path = ".spec.mode", until = "v1"))]
#[koord(selectable(".spec.mode", ".spec.host", since = "v1beta1"), selectable = ".spec.zone")]
#[koord(hardened(column(name = "Zone", type = "string", path = ".spec.zone", until = "v1beta1")))]
#[koord(older(version = "v1beta1", storage), older(version = "v1alpha2", served = false, deprecated = "use v1"))]
#[koord(older(version = "v1alpha1", skip_version))]
struct Pool {
    metadata: ObjectMeta,
    spec: PoolSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<PoolStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
struct PoolSpec {
    #[koord(renamed(since = "v1", from = "count"))]
    size: i32,
    mode: String,
    host: String,
    zone: String,
}

/// What is left out of the definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convert)]
#[koord(skip_description)]
struct PoolStatus {
    /// Left out too.
    #[koord(skip_description)]
    size: i32,
    /// Pods of the pool.
    selector: String,
}

const POOL: &[Declared] = &[
    Declared::of::<Pool>(),
    Declared::of::<Pool>().older("v1beta1"),
    Declared::of::<Pool>().older("v1alpha2"),
    Declared::of::<Pool>().older("v1alpha1"),
];

/// A shelf, whose rules differ between its versions.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", older(version = "v1beta1"), test)]
struct Shelf {
    metadata: ObjectMeta,
    spec: ShelfSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[koord(in_versions(since = "v1", at_least_one_of("label", "owner")))]
struct ShelfSpec {
    #[koord(minimum = 0)]
    #[koord(in_versions(until = "v1", maximum = 10), in_versions(since = "v1", maximum = 5, exclusive_maximum))]
    boards: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(in_versions(since = "v1beta1", until = "v1", pattern = "^[a-z]+$"))]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(in_versions(since = "v1", items(max_length = 2)))]
    books: Vec<String>,
}

fn texts(list: &Value, key: &str) -> String {
    let texts = list.as_array().into_iter().flatten().filter_map(|one| one[key].as_str());
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_version_shows_what_is_said_of_it() {
    let document = custom_resource_definition(POOL, Profile::Hardened);
    let versions = document["spec"]["versions"].as_array().unwrap();
    let shown = |version: &Value| {
        let columns = texts(&version["additionalPrinterColumns"], "name");
        (version["name"].clone(), columns, texts(&version["selectableFields"], "jsonPath"))
    };
    let (all, rest) = (".spec.mode .spec.host .spec.zone".to_owned(), ".spec.zone".to_owned());
    assert_eq!(
        versions.iter().map(shown).collect::<Vec<_>>(),
        [
            (json!("v1"), "Size Host".to_owned(), all.clone()),
            (json!("v1beta1"), "Size Host Mode".to_owned(), all),
            (json!("v1alpha2"), "Size Mode Zone".to_owned(), rest),
        ]
    );
    let newest = json!({
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.selector",
        },
    });
    let beta =
        json!({"status": {}, "scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.size"}});
    let subresources: Vec<&Value> = versions.iter().map(|version| &version["subresources"]).collect();
    assert_eq!(subresources, [&newest, &beta, &Value::Null]);
}

#[test]
fn a_schema_has_the_keywords_of_its_version() {
    let newest = Declared::of::<Shelf>();
    let versions = [newest, newest.older("v1beta1"), newest.older("v1alpha1")];
    let document = custom_resource_definition(&versions, Profile::Compatible);
    let rules = |version: &Value| {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let (fields, has_rule) = (&spec["properties"], spec["x-kubernetes-validations"].is_array());
        let (boards, items) = (&fields["boards"], &fields["books"]["items"]);
        let limits = json!([boards["minimum"], boards["maximum"], boards["exclusiveMaximum"]]);
        json!([limits, fields["label"]["pattern"], items["maxLength"], has_rule])
    };
    let shown: Vec<Value> = document["spec"]["versions"].as_array().unwrap().iter().map(rules).collect();
    assert_eq!(
        shown,
        [
            json!([[0, 5, true], null, 2, true]),
            json!([[0, 10, null], "^[a-z]+$", null, false]),
            json!([[0, 10, null], null, null, false]),
        ]
    );
}

/// Fields of other types whose keywords differ between versions.
#[derive(Serialize, Deserialize, Schema)]
struct Parcel<T> {
    #[koord(list_type = "map")]
    #[koord(in_versions(until = "v1", list_map_key = "id"), in_versions(since = "v1", list_map_key = "name"))]
    tags: Vec<Tag>,
    #[koord(in_versions(since = "v1", items(items(max_length = 8))))]
    rows: Vec<Vec<String>>,
    #[koord(in_versions(since = "v1", max_properties = 2))]
    rest: T,
    lid: Lid,
    color: Color,
    #[serde(flatten)]
    size: Size,
}

#[derive(Serialize, Deserialize, Schema)]
struct Tag {
    id: String,
    name: String,
}

#[derive(Serialize, Deserialize, Schema)]
enum Lid {
    Screw {
        #[koord(in_versions(until = "v1", minimum = 3))]
        turns: i32,
    },
    Cork {
        length: i32,
    },
}

#[derive(Serialize, Deserialize, Schema)]
#[koord(in_versions(until = "v1", enumeration("Red")))]
enum Color {
    Red,
    Blue,
}

#[derive(Serialize, Deserialize, Schema)]
struct Size {
    weight: Weight,
}

#[derive(Serialize, Deserialize, Schema)]
#[koord(in_versions(since = "v1", maximum = 5))]
struct Weight(i64);

#[test]
fn keywords_of_versions_stand_on_every_type_and_inside_of_it() {
    let shown = |emit: Emit| {
        let schema = serde_json::to_value(<Parcel<BTreeMap<String, i32>>>::schema(emit)).unwrap();
        let properties = [
            "tags/x-kubernetes-list-map-keys",
            "rows/items/items/maxLength",
            "rest/maxProperties",
            "lid/properties/Screw/properties/turns/minimum",
            "color/enum",
            "weight/maximum",
        ];
        json!(properties.map(|place| schema.pointer(&format!("/properties/{place}")).cloned()))
    };
    let newest = Emit::new(Profile::Compatible);
    assert_eq!(shown(newest), json!([["name"], 8, 2, null, ["Red", "Blue"], 5]));
    assert_eq!(shown(newest.at_version("v1beta1")), json!([["id"], null, null, 3, ["Red"], null]));
}

#[test]
fn rust_has_the_keywords_of_the_newest_version() {
    let places = |boards: i32, label: Option<&str>, book: &str| {
        let (label, owner, books) = (label.map(str::to_owned), None, vec![book.to_owned()]);
        let errors = ShelfSpec { boards, label, owner, books }.validate();
        errors.iter().map(|error| error.field.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(places(4, Some("A"), "ab"), "", "the pattern is of an older version");
    assert_eq!(places(5, Some("A"), "abc"), "boards books[0]");
    let spec = ShelfSpec { boards: 4, label: None, owner: None, books: Vec::new() };
    assert_eq!(spec.validate().len(), 1, "one of two fields is needed");
}

#[test]
fn an_older_version_is_stored_served_and_deprecated_as_the_type_says() {
    let document = custom_resource_definition(POOL, Profile::Compatible);
    let served = |version: &Value| {
        let of = |key: &str| version[key].clone();
        (of("name"), of("served"), of("storage"), of("deprecationWarning"))
    };
    let versions = document["spec"]["versions"].as_array().unwrap();
    assert_eq!(
        versions.iter().map(served).collect::<Vec<_>>(),
        [
            (json!("v1"), json!(true), json!(false), Value::Null),
            (json!("v1beta1"), json!(true), json!(true), Value::Null),
            (json!("v1alpha2"), json!(false), json!(false), json!("use v1")),
        ]
    );
    let other = Declared::of::<Pool>().older("v1alpha3").info.served;
    assert_eq!((other.served, other.storage, other.deprecated, other.skipped), (true, false, None, false));
}

#[test]
fn a_skipped_version_is_in_no_document_and_is_converted() {
    assert!(!reference_page(POOL).contains("v1alpha1"));
    let mut object = json!({
        "apiVersion": "example.com/v1alpha1", "kind": "Pool", "metadata": {},
        "spec": {"count": 1, "mode": "m", "host": "h", "zone": "z"},
    });
    Conversion::of::<Pool>(&["v1beta1", "v1alpha1"]).convert(&mut object, "v1").unwrap();
    assert_eq!(object["spec"]["size"], 1);
    let service = WebhookService { namespace: "system", name: "webhook-service", ca_bundle: "Cg==" };
    let strategy = |versions: &[Declared]| {
        let document = converted_resource_definition(versions, Profile::Compatible, &service);
        document["spec"]["conversion"]["strategy"].clone()
    };
    assert_eq!(strategy(POOL), "Webhook");
    assert_eq!(strategy(&[POOL[0], POOL[3]]), Value::Null, "one version is left");
    assert_eq!(custom_resource_definition(&POOL[3..], Profile::Compatible), Value::Null);
}

#[test]
fn a_description_that_is_skipped_is_left_out() {
    let document = custom_resource_definition(POOL, Profile::Compatible);
    let status = &document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let described = |node: &Value| node["description"].clone();
    assert_eq!(described(status), Value::Null);
    assert_eq!(described(&status["properties"]["size"]), Value::Null);
    assert_eq!(described(&status["properties"]["selector"]), "Pods of the pool.");
}
