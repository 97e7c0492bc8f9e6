//! The hand-written schemas of Kubernetes' types, each against a golden.
//!
//! Where the OpenAPI documents of a real server are there (`KOORD_SHARED`), property names and required fields are also
//! held against them.

use std::io::Write as _;

use k8s_openapi::{
    api::core::v1::{
        LocalObjectReference, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference, ResourceClaim,
        ResourceRequirements, SecretKeySelector, Taint, Toleration,
    },
    apimachinery::pkg::apis::meta::v1::{
        Condition, DeleteOptions, LabelSelector, LabelSelectorRequirement, MicroTime, ObjectMeta, OwnerReference,
        Preconditions, Time,
    },
};
use koord_resource::{Schema, declare::Emit};
use serde_json::{Value, json};

fn schema<T: Schema>() -> Value {
    strip(serde_json::to_value(T::schema(Emit::default())).unwrap())
}

/// Without prose.
fn strip(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(name, value)| name != "description" || !value.is_string());
            Value::Object(kept.map(|(name, value)| (name, strip(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(strip).collect()),
        scalar => scalar,
    }
}

fn quantities() -> Value {
    let pattern = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let quantity = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": pattern, "x-kubernetes-int-or-string": true,
    });
    json!({"type": "object", "additionalProperties": quantity})
}

fn requirement() -> Value {
    let values = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"});
    json!({
        "type": "object", "required": ["key", "operator"],
        "properties": {"key": {"type": "string"}, "operator": {"type": "string"}, "values": values},
    })
}

fn atomic_list(items: &Value) -> Value {
    json!({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"})
}

#[test]
fn times_and_metadata() {
    let time = json!({"type": "string", "format": "date-time"});
    assert_eq!((schema::<Time>(), schema::<MicroTime>()), (time.clone(), time));
    assert_eq!(schema::<ObjectMeta>(), json!({"type": "object"}));
}

#[test]
fn selectors() {
    assert_eq!(schema::<LabelSelectorRequirement>(), requirement());
    assert_eq!(schema::<NodeSelectorRequirement>(), requirement());
    assert_eq!(
        schema::<LabelSelector>(),
        json!({
            "type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {
                "matchExpressions": atomic_list(&requirement()),
                "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        })
    );
    assert_eq!(
        schema::<NodeSelectorTerm>(),
        json!({
            "type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {"matchExpressions": atomic_list(&requirement()), "matchFields": atomic_list(&requirement())},
        })
    );
}

#[test]
fn references() {
    let text = json!({"type": "string"});
    assert_eq!(
        schema::<ObjectReference>(),
        json!({
            "type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {
                "apiVersion": text, "fieldPath": text, "kind": text, "name": text, "namespace": text,
                "resourceVersion": text, "uid": text,
            },
        })
    );
    assert_eq!(
        schema::<OwnerReference>(),
        json!({
            "type": "object", "x-kubernetes-map-type": "atomic", "required": ["apiVersion", "kind", "name", "uid"],
            "properties": {
                "apiVersion": text, "blockOwnerDeletion": {"type": "boolean"}, "controller": {"type": "boolean"},
                "kind": text, "name": text, "uid": text,
            },
        })
    );
    let name = json!({"type": "string", "default": ""});
    assert_eq!(
        schema::<LocalObjectReference>(),
        json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"name": name}})
    );
    assert_eq!(
        schema::<SecretKeySelector>(),
        json!({
            "type": "object", "x-kubernetes-map-type": "atomic", "required": ["key"],
            "properties": {"key": text, "name": name, "optional": {"type": "boolean"}},
        })
    );
}

#[test]
fn what_pods_and_nodes_need() {
    let text = json!({"type": "string"});
    assert_eq!(
        schema::<Taint>(),
        json!({
            "type": "object", "required": ["effect", "key"],
            "properties": {"effect": text, "key": text, "timeAdded": {"type": "string", "format": "date-time"}, "value": text},
        })
    );
    assert_eq!(
        schema::<Toleration>(),
        json!({
            "type": "object",
            "properties": {
                "effect": text, "key": text, "operator": text, "value": text,
                "tolerationSeconds": {"type": "integer", "format": "int64"},
            },
        })
    );
    let claim = json!({"type": "object", "required": ["name"], "properties": {"name": text, "request": text}});
    assert_eq!(schema::<ResourceClaim>(), claim);
    assert_eq!(
        schema::<ResourceRequirements>(),
        json!({
            "type": "object",
            "properties": {
                "claims": {
                    "type": "array", "items": claim, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                },
                "limits": quantities(), "requests": quantities(),
            },
        })
    );
}

#[test]
fn conditions_and_deletions() {
    let text = json!({"type": "string"});
    let condition = schema::<Condition>();
    assert_eq!(condition["required"], json!(["lastTransitionTime", "message", "reason", "status", "type"]),);
    let properties = &condition["properties"];
    assert_eq!(properties["observedGeneration"], json!({"type": "integer", "format": "int64", "minimum": 0}));
    assert_eq!(properties["status"], json!({"type": "string", "enum": ["True", "False", "Unknown"]}));
    assert_eq!(properties["message"], json!({"type": "string", "maxLength": 32768}));
    assert_eq!((&properties["reason"]["minLength"], &properties["type"]["maxLength"]), (&json!(1), &json!(316)));
    let preconditions = json!({"type": "object", "properties": {"resourceVersion": text, "uid": text}});
    assert_eq!(schema::<Preconditions>(), preconditions);
    let (integer, boolean) = (json!({"type": "integer", "format": "int64"}), json!({"type": "boolean"}));
    assert_eq!(
        schema::<DeleteOptions>(),
        json!({
            "type": "object",
            "properties": {
                "apiVersion": text, "dryRun": atomic_list(&text), "gracePeriodSeconds": integer,
                "ignoreStoreReadErrorWithClusterBreakingPotential": boolean, "kind": text, "orphanDependents": boolean,
                "preconditions": preconditions, "propagationPolicy": text,
            },
        })
    );
}

#[test]
fn names_are_those_of_a_real_server() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into();
    let path =
        std::path::Path::new(&std::env::var_os("KOORD_SHARED").unwrap_or(beside)).join("data/openapi-v3/api__v1.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        // Not through the print macros: the test harness keeps those to itself.
        let line = "SKIPPED names of a real server: KOORD_SHARED names no folder with its OpenAPI documents";
        let _ = writeln!(std::io::stderr(), "{line}");
        return;
    };
    let document: Value = serde_json::from_str(&text).unwrap();
    let core = "io.k8s.api.core.v1";
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
    for (name, ours) in [
        (format!("{core}.LocalObjectReference"), schema::<LocalObjectReference>()),
        (format!("{core}.NodeSelectorRequirement"), schema::<NodeSelectorRequirement>()),
        (format!("{core}.NodeSelectorTerm"), schema::<NodeSelectorTerm>()),
        (format!("{core}.ObjectReference"), schema::<ObjectReference>()),
        (format!("{core}.ResourceClaim"), schema::<ResourceClaim>()),
        (format!("{core}.ResourceRequirements"), schema::<ResourceRequirements>()),
        (format!("{core}.SecretKeySelector"), schema::<SecretKeySelector>()),
        (format!("{core}.Taint"), schema::<Taint>()),
        (format!("{core}.Toleration"), schema::<Toleration>()),
        (format!("{meta}.Condition"), schema::<Condition>()),
        (format!("{meta}.DeleteOptions"), schema::<DeleteOptions>()),
        (format!("{meta}.LabelSelector"), schema::<LabelSelector>()),
        (format!("{meta}.OwnerReference"), schema::<OwnerReference>()),
        (format!("{meta}.Preconditions"), schema::<Preconditions>()),
    ] {
        let theirs = &document["components"]["schemas"][&name];
        let keys = |schema: &Value| {
            let mut keys: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            keys.sort();
            keys
        };
        let required = |schema: &Value| {
            let mut names: Vec<String> = serde_json::from_value(schema["required"].clone()).unwrap_or_default();
            names.sort();
            names
        };
        assert_eq!((keys(&ours), required(&ours)), (keys(theirs), required(theirs)), "{name}");
    }
}
