//! Whatever a client sends, no request needs more stack than a worker thread has.

use std::thread;

use envtest::request::ApiRequest;
use http::Method;
use serde_json::{Value, json};

use crate::api_server::Core;

/// The stack of tokio's worker threads.
const STACK_BYTES: usize = 2 << 20;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn on_a_workers_stack(test: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

fn send(core: &mut Core, method: Method, path: &str, content_type: &str, body: String) -> (u16, Value) {
    let mut request = ApiRequest::new(method, path, body);
    content_type.clone_into(&mut request.content_type);
    request.query.push(("fieldManager".to_owned(), "test".to_owned()));
    core.send(&request)
}

fn nested(levels: usize, key: &str, innermost: Value) -> Value {
    (0..levels).fold(innermost, |inside, _| json!({key: inside}))
}

fn definition(schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trees.x.io"},
        "spec": {"group": "x.io", "scope": "Cluster", "names": {"plural": "trees", "kind": "Tree"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

#[test]
fn bodies_that_nest_without_end_are_refused_in_every_format() {
    on_a_workers_stack(|| {
        let mut core = Core::new();
        for depth in [121, 9_999, 10_001, 1_000_000] {
            let text =
                format!("{{\"metadata\":{{\"name\":\"a\"}},\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            for content_type in ["application/json", "application/yaml"] {
                let (code, status) = send(&mut core, Method::POST, MAPS, content_type, text.clone());
                assert_eq!(code, 400, "{depth} {content_type}");
                let message = status["message"].as_str().unwrap();
                assert!(message.contains("exceeded max depth") || message.contains("nested deeper"), "{message:.300}");
            }
            for content_type in [
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ] {
                let path = format!("{MAPS}/kube-root-ca.crt");
                let (code, _) = send(&mut core, Method::PATCH, &path, content_type, text.clone());
                assert!((400..500).contains(&code), "{depth} {content_type} {code}");
            }
        }
    });
}

#[test]
fn the_deepest_schema_and_the_deepest_object_fit_into_a_workers_stack() {
    on_a_workers_stack(|| {
        let mut core = Core::new();
        let leaf = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'no'"}]});
        let schema = |levels: usize| {
            (0..levels).fold(leaf.clone(), |inside, _| json!({"type": "object", "properties": {"a": inside}}))
        };
        // As deep as a definition may be, found by asking.
        let levels = (1..40)
            .rev()
            .find(|levels| {
                let body = definition(&schema(*levels)).to_string();
                send(&mut core, Method::POST, DEFINITIONS, "application/json", body).0 == 201
            })
            .unwrap();
        assert!(levels >= 28, "{levels}");
        let mut tree = nested(levels, "a", json!("yes"));
        tree["apiVersion"] = json!("x.io/v1");
        tree["kind"] = json!("Tree");
        tree["metadata"] = json!({"name": "t"});
        let path = "/apis/x.io/v1/trees";
        assert_eq!(send(&mut core, Method::POST, path, "application/json", tree.to_string()).0, 201);
        let applied = "application/apply-patch+yaml";
        assert_eq!(send(&mut core, Method::PATCH, &format!("{path}/t"), applied, tree.to_string()).0, 200);
        let patch = nested(levels, "a", json!("no")).to_string();
        let (code, status) =
            send(&mut core, Method::PATCH, &format!("{path}/t"), "application/merge-patch+json", patch);
        assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    });
}

#[test]
fn objects_without_a_schema_may_be_as_deep_as_a_body() {
    on_a_workers_stack(|| {
        let mut core = Core::new();
        let body = definition(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).to_string();
        assert_eq!(send(&mut core, Method::POST, DEFINITIONS, "application/json", body).0, 201);
        let (path, of) = ("/apis/x.io/v1/trees", |levels| {
            let mut tree = nested(levels, "a", json!("x"));
            tree["apiVersion"] = json!("x.io/v1");
            tree["kind"] = json!("Tree");
            tree["metadata"] = json!({"name": "t"});
            tree.to_string()
        });
        assert_eq!(send(&mut core, Method::POST, path, "application/json", of(121)).0, 400);
        // What is written can be read again, alone and in a list: managedFields nest as deep as the fields do.
        let (code, made) = send(&mut core, Method::POST, path, "application/json", of(120));
        assert_eq!(code, 201, "{made:.300}");
        let (_, list) = send(&mut core, Method::GET, path, "", String::new());
        assert_eq!(list["items"][0], made);
        let deeper = nested(119, "a", json!({"b": "y"})).to_string();
        let merge = "application/merge-patch+json";
        assert_eq!(send(&mut core, Method::PATCH, &format!("{path}/t"), merge, deeper).0, 200);
    });
}
