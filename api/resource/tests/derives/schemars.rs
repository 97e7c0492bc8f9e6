//! Fields whose types schemars describes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Resource, Schema, Validate,
    declare::{Emit, Profile},
    document::Declared,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn schema<T: Schema>() -> Value {
    serde_json::to_value(T::schema(Emit::default())).unwrap()
}

/// A type of another crate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Window {
    /// The first hour.
    #[schemars(range(max = 23))]
    from: u8,
    /// How many hours; absent means until midnight.
    hours: Option<u32>,
    #[serde(default)]
    zone: Zone,
    days: BTreeSet<Day>,
    owners: BTreeMap<String, Vec<f64>>,
    #[schemars(length(min = 1), regex(pattern = "^[a-z]+$"))]
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Zone {
    /// Everywhere.
    #[default]
    Utc,
    /// Where the node is.
    Local,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
enum Day {
    Saturday,
    Sunday,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Trigger {
    Cron { schedule: String },
    Usage { percent: i64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Target {
    Node(String),
    Pool { labels: BTreeMap<String, String> },
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
struct Plan {
    metadata: ObjectMeta,
    spec: PlanSpec,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate)]
struct PlanSpec {
    /// When it is allowed.
    #[koord(schemars, validate(rule = "self.from < 20", message = "too late"))]
    window: Window,
    #[koord(schemars)]
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<Trigger>,
    #[koord(schemars)]
    targets: Vec<Target>,
}

#[test]
fn a_type_of_schemars_becomes_a_structural_schema() {
    assert_eq!(
        schema::<PlanSpec>()["properties"]["window"],
        json!({
            "description": "When it is allowed.",
            "type": "object",
            "required": ["days", "from", "name", "owners"],
            "properties": {
                "from": {"description": "The first hour.", "type": "integer", "format": "int32", "minimum": 0, "maximum": 23},
                "hours": {"description": "How many hours; absent means until midnight.", "type": "integer",
                    "format": "int64", "minimum": 0, "maximum": u32::MAX, "nullable": true},
                "zone": {"type": "string", "enum": ["Utc", "Local"], "default": "Utc"},
                "days": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string", "enum": ["Saturday", "Sunday"]}},
                "owners": {"type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "number", "format": "double"}}},
                "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            },
            "x-kubernetes-validations": [{"rule": "self.from < 20", "message": "too late"}],
        })
    );
}

#[test]
fn enums_of_schemars_name_every_property_at_its_place() {
    let spec = schema::<PlanSpec>();
    assert_eq!(
        spec["properties"]["trigger"],
        json!({
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"type": "string", "enum": ["cron", "usage"]},
                "schedule": {"type": "string"},
                "percent": {"type": "integer", "format": "int64"},
            },
            "oneOf": [
                {"required": ["schedule"], "properties": {"kind": {"enum": ["cron"]}}},
                {"required": ["percent"], "properties": {"kind": {"enum": ["usage"]}}},
            ],
        })
    );
    assert_eq!(
        spec["properties"]["targets"]["items"],
        json!({
            "type": "object",
            "properties": {
                "node": {"type": "string"},
                "pool": {"type": "object", "required": ["labels"], "properties": {
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
            },
            "oneOf": [{"required": ["node"]}, {"required": ["pool"]}],
        })
    );
    assert_eq!(spec["required"], json!(["window", "targets"]));
}

#[test]
fn an_api_server_takes_the_schema() {
    let errors = Declared::of::<Plan>().check(Profile::Hardened);
    assert!(errors.is_empty(), "{errors}");
}

// === what has no structural form ===

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Tree {
    children: Vec<Tree>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Pair {
    bounds: (i64, String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Mixed {
    Nothing,
    Something(i64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Wide {
    number: u128,
}

/// Each field has no structural form.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
struct Odd {
    metadata: ObjectMeta,
    #[koord(schemars)]
    tree: Tree,
    #[koord(schemars)]
    pairs: Vec<Pair>,
    #[koord(schemars)]
    mixed: Mixed,
    #[koord(schemars)]
    wide: Wide,
}

#[test]
fn what_is_not_structural_is_an_error_that_names_type_and_field() {
    let errors = Declared::of::<Odd>().check(Profile::Compatible);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "Odd.tree.children[*]: Forbidden: type Tree, field children[*]: the type contains itself; mark the field `schemaless, preserve_unknown_fields`",
            "Odd.pairs[*].bounds: Forbidden: type Array_of_Pair, field [*].bounds: the items of a tuple have schemas of their own",
            "Odd.mixed: Forbidden: type Mixed: an enum with and without data is a text or an object; give it a tag",
            "Odd.wide.number: Forbidden: type Wide, field number: API servers know no integers of the format \"uint128\"",
        ]
    );
}
