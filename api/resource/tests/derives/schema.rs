//! Schemas of structs and newtypes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use koord_resource::{
    IntOrString, Quantity, Schema,
    declare::{Emit, Profile},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn schema<T: Schema>() -> Value {
    serde_json::to_value(T::schema(Emit::default())).unwrap()
}

fn hardened<T: Schema>() -> Value {
    serde_json::to_value(T::schema(Emit::new(Profile::Hardened))).unwrap()
}

/// Every rule at once.
#[derive(Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[koord(at_most_one_of("label", "plainText"))]
#[koord(validate(rule = "self.count < 5 || has(self.label)", message = "large counts need a label"))]
struct Everything {
    /// How many.
    ///
    /// Not more than a hundred, see [`Other`].
    #[koord(minimum = 0, exclusive_minimum, maximum = 100, multiple_of = 5, example = 10)]
    count: i32,
    #[koord(minimum = -0.5, maximum = 1.5)]
    ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(min_length = 1, max_length = 63, pattern = "^[a-z]+$", format = "hostname", title = "Label")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = "x", external_docs(url = "https://example.com", description = "More"))]
    plain_text: Option<String>,
    #[koord(min_items = 1, max_items = 8, list_type = "set", items(min_length = 2, pattern = "^a"))]
    names: Vec<String>,
    #[serde(default)]
    #[koord(list_type = "map", list_map_key = "key", list_map_key = "other")]
    entries: Vec<Other>,
    #[serde(default)]
    #[koord(min_properties = 1, max_properties = 2, map_type = "granular")]
    by_name: BTreeMap<String, Other>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(nullable)]
    seen: Option<Time>,
    #[serde(default)]
    #[koord(schemaless, preserve_unknown_fields)]
    template: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(enumeration("a", "b"), immutable)]
    mode: Option<String>,
    #[koord(enumeration(1, 2))]
    level: u8,
    #[serde(default)]
    #[koord(embedded_resource, preserve_unknown_fields)]
    object: Value,
    #[koord(required, default = false)]
    #[serde(default)]
    healthy: bool,
    #[koord(type = "string")]
    #[serde(with = "as_text")]
    port: u16,
    #[koord(hardened(maximum = 7))]
    weight: i64,
    #[serde(skip)]
    #[allow(dead_code)]
    hidden: u8,
    #[serde(flatten)]
    rest: Other,
}

#[derive(Default, Serialize, Deserialize, Schema)]
#[koord(struct_type = "atomic")]
struct Other {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = 1)]
    other: Option<Box<IntOrString>>,
}

mod as_text {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub fn serialize<S: serde::Serializer>(port: &u16, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(port)
    }
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
        <String as serde::Deserialize>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[test]
fn every_rule_reaches_the_schema() {
    let other =
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "default": 1});
    let item = json!({
        "type": "object",
        "properties": {"key": {"type": "string"}, "other": other},
        "required": ["key"],
        "x-kubernetes-map-type": "atomic",
    });
    let properties = json!({
        "count": {
            "description": "How many.\n\nNot more than a hundred, see `Other`.",
            "type": "integer", "format": "int32", "minimum": 0, "exclusiveMinimum": true, "maximum": 100, "multipleOf": 5,
            "example": 10,
        },
        "ratio": {"type": "number", "format": "double", "minimum": -0.5, "maximum": 1.5},
        "label": {
            "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z]+$", "format": "hostname", "title": "Label",
        },
        "plainText": {
            "type": "string", "default": "x", "externalDocs": {"url": "https://example.com", "description": "More"},
        },
        "names": {
            "type": "array", "items": {"type": "string", "minLength": 2, "pattern": "^a"}, "minItems": 1, "maxItems": 8,
            "x-kubernetes-list-type": "set",
        },
        "entries": {
            "type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key", "other"],
        },
        "byName": {
            "type": "object", "additionalProperties": item, "minProperties": 1, "maxProperties": 2,
            "x-kubernetes-map-type": "granular",
        },
        "seen": {"type": "string", "format": "date-time", "nullable": true},
        "template": {"x-kubernetes-preserve-unknown-fields": true},
        "mode": {
            "type": "string", "enum": ["a", "b"],
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "this field cannot be changed"}],
        },
        "level": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 255, "enum": [1, 2]},
        "object": {"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true},
        "healthy": {"type": "boolean", "default": false},
        "port": {"type": "string"},
        "weight": {"type": "integer", "format": "int64"},
        "key": {"type": "string"},
        "other": other,
    });
    let schema = schema::<Everything>();
    for (name, expected) in properties.as_object().unwrap() {
        assert_eq!(&schema["properties"][name], expected, "{name}");
    }
    assert_eq!(schema["properties"].as_object().unwrap().len(), properties.as_object().unwrap().len());
    assert_eq!(schema["required"], json!(["count", "ratio", "names", "level", "healthy", "port", "weight", "key"]));
    assert_eq!(schema["description"], "Every rule at once.");
    assert_eq!(
        schema["x-kubernetes-validations"],
        json!([
            {
                "rule": "[has(self.label), has(self.plainText)].filter(set, set).size() <= 1",
                "message": "at most one of label, plainText must be set",
            },
            {"rule": "self.count < 5 || has(self.label)", "message": "large counts need a label"},
        ])
    );
}

#[test]
fn the_hardened_profile_adds_its_rules() {
    assert_eq!(hardened::<Everything>()["properties"]["weight"]["maximum"], 7);
}

/// Rules in CEL, with all that may stand beside one.
#[derive(Serialize, Deserialize, Schema)]
#[koord(exactly_one_of("namespace", "cluster"), at_least_one_of("cluster", "size"))]
#[koord(validate(
    rule = "!oldSelf.hasValue() || has(self.size)",
    message_expression = "'size was ' + string(oldSelf.value().size)",
    reason = "FieldValueForbidden",
    field_path = ".size",
    optional_old_self
))]
struct Choice {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i32>,
}

#[test]
fn a_rule_has_all_that_stands_beside_it() {
    assert_eq!(
        schema::<Choice>()["x-kubernetes-validations"],
        json!([
            {
                "rule": "[has(self.__namespace__), has(self.cluster)].filter(set, set).size() == 1",
                "message": "exactly one of namespace, cluster must be set",
            },
            {
                "rule": "[has(self.cluster), has(self.size)].filter(set, set).size() >= 1",
                "message": "at least one of cluster, size must be set",
            },
            {
                "rule": "!oldSelf.hasValue() || has(self.size)",
                "messageExpression": "'size was ' + string(oldSelf.value().size)",
                "reason": "FieldValueForbidden",
                "fieldPath": ".size",
                "optionalOldSelf": true,
            },
        ])
    );
}

/// What is said of items, and of the items of items.
#[derive(Serialize, Deserialize, Schema)]
struct Items {
    #[koord(items(int_or_string, nullable))]
    ports: Vec<Value>,
    #[koord(items(type = "string", format = "date-time"))]
    times: Vec<Value>,
    #[koord(items(min_items = 1, items(max_length = 8)))]
    rows: Vec<Vec<String>>,
}

#[test]
fn what_changes_a_whole_schema_changes_that_of_items_too() {
    let schema = schema::<Items>();
    let items = |name: &str| schema["properties"][name]["items"].clone();
    let port = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "nullable": true,
    });
    assert_eq!(items("ports"), port);
    assert_eq!(items("times"), json!({"type": "string", "format": "date-time"}));
    assert_eq!(items("rows"), json!({"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 8}}));
}

/// A name.
#[derive(Default, Serialize, Deserialize, Schema)]
#[koord(pattern = "^[a-z]+$")]
struct Name(String);

/// A pair of one type.
#[derive(Serialize, Deserialize, Schema)]
struct Pair<T> {
    one: T,
    #[serde(default)]
    many: Vec<T>,
}

#[derive(Serialize, Deserialize, Schema)]
struct UsesThem {
    /// Who.
    #[koord(max_length = 5)]
    name: Name,
    pair: Pair<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    selector: Option<LabelSelector>,
    quantity: Quantity,
    fixed: [i64; 2],
    set: BTreeSet<String>,
}

#[test]
fn newtypes_and_generics_take_part() {
    let name = json!({"description": "A name.", "type": "string", "pattern": "^[a-z]+$"});
    let schema = schema::<UsesThem>();
    let properties = &schema["properties"];
    assert_eq!(
        properties["name"],
        json!({"description": "Who.", "type": "string", "pattern": "^[a-z]+$", "maxLength": 5})
    );
    assert_eq!(
        properties["pair"],
        json!({
            "description": "A pair of one type.",
            "type": "object",
            "properties": {"one": name, "many": {"type": "array", "items": name}},
            "required": ["one"],
        })
    );
    assert_eq!(properties["selector"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(properties["fixed"]["minItems"], 2);
    assert_eq!(properties["set"]["x-kubernetes-list-type"], "set");
    assert_eq!(schema["required"], json!(["name", "pair", "quantity", "fixed", "set"]));
}

/// A chain that ends somewhere, by way of another type.
#[derive(Serialize, Deserialize, Schema)]
struct Link {
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<Box<Ring>>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Ring {
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Link>,
}

#[test]
fn types_that_contain_each_other_end() {
    let text = schema::<Link>().to_string();
    assert!(text.ends_with('}') && text.contains("x-kubernetes-preserve-unknown-fields"));
}
