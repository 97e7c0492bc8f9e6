//! The schemas of Kubernetes' types: those that Koordinator's kinds embed, each against a golden, and a spec of many.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        batch::v1::JobTemplateSpec,
        core::v1::{
            Affinity, Container, EnvVar, LocalObjectReference, NodeSelectorRequirement, NodeSelectorTerm,
            ObjectReference, PersistentVolumeClaimSpec, PodTemplateSpec, Probe, ResourceClaim, ResourceRequirements,
            SecretKeySelector, SecurityContext, Taint, Toleration, Volume,
        },
    },
    apimachinery::pkg::apis::meta::v1::{
        Condition, DeleteOptions, LabelSelector, LabelSelectorRequirement, MicroTime, ObjectMeta, OwnerReference,
        Preconditions, Time,
    },
};
use koord_resource::{
    Mutate, Schema, Validate,
    declare::Emit,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};
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

/// What a workload is made of, each part a type of Kubernetes.
#[derive(Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec {
    /// The pods.
    template: PodTemplateSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity: Option<Affinity>,
    env: Vec<EnvVar>,
    volumes: BTreeMap<String, Volume>,
    claim: PersistentVolumeClaimSpec,
    #[koord(min_items = 1)]
    containers: Vec<Container>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Probe>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security_context: Option<SecurityContext>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleanup: Option<JobTemplateSpec>,
}

#[test]
fn specs_embed_types_of_kubernetes() {
    let spec = schema::<WorkloadSpec>();
    assert_eq!(spec["required"], json!(["template", "env", "volumes", "claim", "containers"]));
    let template = &spec["properties"]["template"]["properties"];
    assert_eq!(template["metadata"], json!({"type": "object"}));
    let containers = &template["spec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let port = &containers["items"]["properties"]["ports"]["items"];
    assert_eq!(port["properties"]["protocol"], json!({"type": "string", "default": "TCP"}));
    assert_eq!(spec["properties"]["claim"]["properties"]["resources"]["properties"]["limits"], quantities());
    assert_eq!(spec["properties"]["containers"]["minItems"], 1);
    let hour = &spec["properties"]["cleanup"]["properties"]["spec"]["properties"]["activeDeadlineSeconds"];
    assert_eq!(*hour, json!({"type": "integer", "format": "int64"}));
}

#[test]
fn embedded_types_are_left_as_they_are() {
    let wanted = json!({
        "template": {"spec": {"containers": [{"name": "web"}]}},
        "env": [{"name": "A", "value": "b"}],
        "volumes": {"cache": {"name": "cache", "emptyDir": {}}},
        "claim": {"accessModes": ["ReadWriteOnce"]},
        "containers": [{"name": "side", "ports": [{"containerPort": 80}]}],
    });
    let mut spec: WorkloadSpec = serde_json::from_value(wanted.clone()).unwrap();
    let mut errors = Errors::new();
    spec.validate_schema(&Path::root("spec"), &mut errors);
    assert_eq!(errors, Errors::new());
    spec.mutate();
    assert_eq!(spec, serde_json::from_value::<WorkloadSpec>(wanted).unwrap());
}
