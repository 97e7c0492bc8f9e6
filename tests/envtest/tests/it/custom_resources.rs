//! Custom resources: what their status, their scale and their defaults are.

use envtest::request::ApiRequest;
use http::Method;
use serde_json::{Value, json};

use crate::api_server::Core;

fn cups(core: &mut Core, version: Value) -> &'static str {
    let mut version = version;
    for (field, value) in [("name", json!("v1")), ("served", json!(true)), ("storage", json!(true))] {
        version[field] = value;
    }
    core.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "cups.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
                "versions": [version]}}),
    );
    "/apis/example.com/v1/namespaces/default/cups"
}

fn cup(fields: &Value) -> Value {
    let mut cup = json!({"apiVersion": "example.com/v1", "kind": "Cup", "metadata": {"name": "a"}});
    cup.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    cup
}

fn any_cup(subresources: &Value) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"subresources": subresources, "schema": {"openAPIV3Schema": schema}})
}

/// The endpoint of the status resets `spec` alone: see `GetResetFields` of the strategy in apiextensions-apiserver.
#[test]
fn a_status_write_owns_the_labels_of_a_custom_resource_that_it_does_not_change() {
    let mut core = Core::new();
    let cups = cups(&mut core, any_cup(&json!({"status": {}})));
    let mut written = core.create(cups, &cup(&json!({"spec": {"size": 1}})));
    written["metadata"]["labels"] = json!({"a": "b"});
    written["spec"]["size"] = json!(2);
    written["status"] = json!({"full": true});
    let (code, written) = core.ask(Method::PUT, &format!("{cups}/a/status"), &written);
    assert_eq!((code, &written["metadata"]["labels"]), (200, &Value::Null));
    let owned = &written["metadata"]["managedFields"];
    let status = owned.as_array().unwrap().iter().find(|entry| entry["subresource"] == "status").unwrap();
    let labels = json!({"f:labels": {".": {}, "f:a": {}}});
    assert_eq!(status["fieldsV1"], json!({"f:metadata": labels, "f:status": {".": {}, "f:full": {}}}));
}

#[test]
fn a_default_below_status_is_there_from_the_first_answer_on() {
    let mut core = Core::new();
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "status": {"type": "object", "default": {"phase": "Pending"}, "properties": {
            "phase": {"type": "string"}, "seen": {"type": "integer", "default": 0}}}}});
    let cups = cups(&mut core, json!({"subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}));
    let created = core.create(cups, &cup(&json!({"status": {"phase": "Lies"}})));
    let pending = json!({"phase": "Pending", "seen": 0});
    assert_eq!(created["status"], pending);
    let owned = created["metadata"]["managedFields"].to_string();
    assert!(!owned.contains("f:status"), "nobody wrote it: {owned}");
    let (_, read) = core.ask(Method::GET, &format!("{cups}/a"), &Value::Null);
    assert_eq!(read, created);
    let (_, mut changed) = core.ask(Method::PUT, &format!("{cups}/a"), &{
        let mut next = read.clone();
        next["spec"] = json!({"n": 1});
        next["status"] = json!({"phase": "Lies"});
        next
    });
    assert_eq!(changed["status"], pending);
    changed["status"] = json!({"phase": "Done"});
    let (_, done) = core.ask(Method::PUT, &format!("{cups}/a/status"), &changed);
    assert_eq!(done["status"], json!({"phase": "Done", "seen": 0}));
}

#[test]
fn a_scale_without_replicas_cannot_be_read_and_can_be_written() {
    let mut core = Core::new();
    let paths = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let cups = cups(&mut core, any_cup(&json!({"status": {}, "scale": paths})));
    core.create(cups, &cup(&json!({"spec": {"size": 1}})));
    let scale = format!("{cups}/a/scale");
    let (code, answer) = core.ask(Method::GET, &scale, &Value::Null);
    let message = r#"Internal error occurred: the spec replicas field ".spec.replicas" does not exist"#;
    assert_eq!((code, answer["message"].as_str()), (500, Some(message)));
    let mut patch = |body: Value| {
        let mut request = ApiRequest::new(Method::PATCH, &scale, body.to_string());
        "application/merge-patch+json".clone_into(&mut request.content_type);
        core.send(&request)
    };
    let (code, answer) = patch(json!({"metadata": {}}));
    assert_eq!(
        (code, answer["message"].as_str()),
        (400, Some(r#"the spec replicas field ".spec.replicas" cannot be empty"#))
    );
    assert_eq!(patch(json!({"spec": {"replicas": 3}})).0, 200);
    let (code, answer) = core.ask(Method::GET, &scale, &Value::Null);
    assert_eq!((code, &answer["spec"]["replicas"]), (200, &json!(3)));
}
