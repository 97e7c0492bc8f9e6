//! Admission rules as a ValidatingAdmissionPolicy.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{
    Resource, Schema,
    document::{Declared, validating_admission_policy},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A thing.
#[derive(Clone, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
struct Thing {
    metadata: ObjectMeta,
    spec: ThingSpec,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct ThingSpec {
    #[koord(minimum = 0, admission(maximum = 9))]
    count: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(admission(enumeration("a", "b"), immutable))]
    mode: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[koord(not_empty)]
    namespace: String,
    parts: Vec<Part>,
    by_name: BTreeMap<String, Part>,
    #[serde(default)]
    #[koord(list_type = "map", list_map_key = "id", list_map_key = "in")]
    disks: Vec<Disk>,
    #[serde(default)]
    labels: BTreeMap<String, Disk>,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Disk {
    id: String,
    r#in: String,
    #[koord(admission(immutable))]
    size: i32,
}

#[derive(Clone, Serialize, Deserialize, Schema)]
struct Part {
    #[koord(admission(pattern = "^\\d$"))]
    id: String,
}

/// A kind whose schema says it all.
#[derive(Clone, Deserialize, Resource, Schema)]
#[koord(group = "example.com", version = "v1", scope = "Cluster")]
struct Plain {
    metadata: ObjectMeta,
}

#[test]
fn rules_in_words_become_cel() {
    let [policy, binding] = validating_admission_policy(&Declared::of::<Thing>()).unwrap();
    let validations = policy["spec"]["validations"].as_array().unwrap();
    let shown: Vec<(&str, &str)> = validations
        .iter()
        .map(|rule| (rule["expression"].as_str().unwrap(), rule["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ("!has(object.spec) || (has(object.spec.__namespace__))", "spec.namespace: Required value"),
            ("!has(object.spec) || (!has(object.spec.count) || (object.spec.count <= 9))", "spec.count: must be <= 9"),
            (
                "!has(object.spec) || (!has(object.spec.mode) || (object.spec.mode in [\"a\",\"b\"]))",
                "spec.mode: must be one of [\"a\",\"b\"]"
            ),
            (
                "request.operation != 'UPDATE' || (!has(object.spec) || !has(oldObject.spec) || \
                 (has(object.spec.mode) == has(oldObject.spec.mode) \
                 && (!has(object.spec.mode) || object.spec.mode == oldObject.spec.mode)))",
                "spec.mode: field is immutable"
            ),
            (
                "!has(object.spec) || (!has(object.spec.__namespace__) || (size(object.spec.__namespace__) >= 1))",
                "spec.namespace: must have at least 1 characters"
            ),
            (
                "!has(object.spec) || (!has(object.spec.parts) || (object.spec.parts.all(item0, !has(item0.id) || \
                 (item0.id.matches(\"^\\\\d$\")))))",
                "spec.parts[].id: must match ^\\d$"
            ),
            (
                "!has(object.spec) || (!has(object.spec.by_name) || (object.spec.by_name.all(item0, \
                 !has(object.spec.by_name[item0].id) || (object.spec.by_name[item0].id.matches(\"^\\\\d$\")))))",
                "spec.by_name[*].id: must match ^\\d$"
            ),
            (
                "request.operation != 'UPDATE' || (!has(object.spec) || !has(oldObject.spec) || \
                 (!has(object.spec.disks) || !has(oldObject.spec.disks) || (object.spec.disks.all(item0, \
                 oldObject.spec.disks.all(old0, !(old0.id == item0.id && old0.__in__ == item0.__in__) || \
                 has(item0.size) == has(old0.size) && (!has(item0.size) || item0.size == old0.size))))))",
                "spec.disks[].size: field is immutable"
            ),
            (
                "request.operation != 'UPDATE' || (!has(object.spec) || !has(oldObject.spec) || \
                 (!has(object.spec.labels) || !has(oldObject.spec.labels) || (object.spec.labels.all(item0, \
                 !(item0 in oldObject.spec.labels) || \
                 has(object.spec.labels[item0].size) == has(oldObject.spec.labels[item0].size) && \
                 (!has(object.spec.labels[item0].size) || \
                 object.spec.labels[item0].size == oldObject.spec.labels[item0].size)))))",
                "spec.labels[*].size: field is immutable"
            ),
        ]
    );
    assert_eq!(binding["spec"], json!({"policyName": "things.example.com", "validationActions": ["Deny"]}));
    assert_eq!(policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"], json!(["things"]));
}

#[test]
fn rules_of_admission_stay_out_of_the_crd() {
    let crd = koord_resource::document::custom_resource_definition(
        &[Declared::of::<Thing>()],
        koord_resource::declare::Profile::Hardened,
    );
    let count = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["count"];
    assert_eq!((&count["minimum"], &count["maximum"]), (&json!(0), &Value::Null));
    assert!(validating_admission_policy(&Declared::of::<Plain>()).is_none());
}
