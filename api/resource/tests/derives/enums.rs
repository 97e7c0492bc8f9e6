//! Schemas of enums.

use koord_resource::{Schema, declare::Emit};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn schema<T: Schema>() -> Value {
    serde_json::to_value(T::schema(Emit::default())).unwrap()
}

/// How pods are allocated.
#[derive(Serialize, Deserialize, Schema)]
enum Closed {
    Restricted,
    /// Documented.
    Aligned,
    #[serde(rename = "best-effort")]
    BestEffort,
    #[serde(untagged)]
    Other(String),
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[koord(open)]
enum Open {
    HalfOpen,
    #[serde(untagged)]
    Other(String),
}

#[test]
fn a_choice_keeps_the_order_of_the_source() {
    assert_eq!(
        schema::<Closed>(),
        json!({"description": "How pods are allocated.", "type": "string", "enum": ["Restricted", "Aligned", "best-effort"]})
    );
    assert_eq!(schema::<Open>(), json!({"type": "string"}));
    assert!(matches!(serde_json::from_value(json!("new")).unwrap(), Closed::Other(word) if word == "new"));
}

#[derive(Serialize, Deserialize, Schema)]
struct Disk {
    path: String,
}

/// Where data goes.
#[derive(Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
enum Target {
    /// A disk.
    LocalDisk(Disk),
    #[serde(rename_all = "camelCase")]
    Bucket {
        bucket_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        region: Option<String>,
    },
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
enum Tagged {
    Disk(Disk),
    Bucket { bucket_name: String },
    Nothing,
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Text(String),
    More(String),
    Nothing,
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(untagged)]
enum NumberOrName {
    Number(i32),
    Name(String),
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(untagged)]
enum Either {
    Disk(Disk),
    Bucket { bucket: String },
}

#[test]
fn external_tags_become_exactly_one_property() {
    assert_eq!(
        schema::<Target>(),
        json!({
            "description": "Where data goes.",
            "type": "object",
            "properties": {
                "localDisk": {
                    "description": "A disk.", "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
                },
                "bucket": {
                    "type": "object",
                    "properties": {"bucketName": {"type": "string"}, "region": {"type": "string"}},
                    "required": ["bucketName"],
                },
            },
            "oneOf": [{"required": ["localDisk"]}, {"required": ["bucket"]}],
        })
    );
}

#[test]
fn internal_tags_join_the_fields_of_all_variants() {
    assert_eq!(
        schema::<Tagged>(),
        json!({
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["Disk", "Bucket", "Nothing"]},
                "path": {"type": "string"},
                "bucketName": {"type": "string"},
            },
            "required": ["type"],
            "oneOf": [
                {"properties": {"type": {"enum": ["Disk"]}}, "required": ["path"]},
                {"properties": {"type": {"enum": ["Bucket"]}}, "required": ["bucketName"]},
                {"properties": {"type": {"enum": ["Nothing"]}}},
            ],
        })
    );
}

#[test]
fn adjacent_tags_stand_beside_their_content() {
    assert_eq!(
        schema::<Adjacent>(),
        json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["Text", "More", "Nothing"]},
                "value": {"type": "string"},
            },
            "required": ["kind"],
            "oneOf": [
                {"properties": {"kind": {"enum": ["Text"]}}, "required": ["value"]},
                {"properties": {"kind": {"enum": ["More"]}}, "required": ["value"]},
                {"properties": {"kind": {"enum": ["Nothing"]}}},
            ],
        })
    );
}

#[test]
fn untagged_enums_allow_what_any_variant_allows() {
    assert_eq!(
        schema::<NumberOrName>(),
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
    );
    assert_eq!(
        schema::<Either>(),
        json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "bucket": {"type": "string"}},
            "anyOf": [{"required": ["path"]}, {"required": ["bucket"]}],
        })
    );
}
