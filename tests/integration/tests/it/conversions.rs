//! Conversion webhooks, good and bad ones: what clients of another version than the stored one see.

use std::{net::SocketAddr, sync::OnceLock};

use koord_webhook_server::{
    Metrics, Page, ServiceBuilder,
    certificates::{self, HotCertificate},
};
use serde_json::{Value, json};

use crate::suite::{Scene, on_every_server};

/// Webhooks by their path, the certificate authority that signed for them, and where they listen.
struct Webhooks {
    address: SocketAddr,
    authority: String,
}

/// What a webhook makes of the honest answer.
type Change = fn(&mut Value);

/// What the webhooks answer: the path, and what becomes of the honest answer.
const ANSWERS: &[(&str, Change)] = &[
    ("/good", |_| {}),
    ("/another-uid", |review| review["response"]["uid"] = json!("somebody-else")),
    ("/nothing", |review| review["response"]["convertedObjects"] = json!([])),
    ("/another-version", |review| first(review)["apiVersion"] = json!("wrong.example.com/v9")),
    ("/another-kind", |review| first(review)["kind"] = json!("Wrong")),
    ("/another-name", |review| first(review)["metadata"]["name"] = json!("wrong")),
    ("/another-identity", |review| first(review)["metadata"]["uid"] = json!("wrong")),
    ("/no-metadata", |review| drop(first(review).as_object_mut().unwrap().remove("metadata"))),
    ("/bad-label", |review| first(review)["metadata"]["labels"] = json!({"not a label": "x"})),
    ("/label-number", |review| first(review)["metadata"]["labels"] = json!({"a": 1})),
    ("/new-label", |review| first(review)["metadata"]["labels"] = json!({"added": "yes"})),
    ("/refuses", |review| {
        review["response"] =
            json!({"uid": review["response"]["uid"], "result": {"status": "Failure", "message": "no room for it"}});
    }),
    ("/unsure", |review| review["response"]["result"] = json!({"status": "Maybe"})),
    ("/no-response", |review| drop(review.as_object_mut().unwrap().remove("response"))),
    ("/another-review", |review| review["kind"] = json!("AdmissionReview")),
    ("/unknown-field", |review| first(review)["spec"]["unknown"] = json!(true)),
];

fn first(review: &mut Value) -> &mut Value {
    &mut review["response"]["convertedObjects"][0]
}

/// `size` in v1, `width` in v2.
fn honest(body: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().unwrap() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        let is_new = object["apiVersion"].as_str().unwrap().ends_with("/v2");
        let (from, to) = if is_new { ("size", "width") } else { ("width", "size") };
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = value;
        }
    }
    json!({
        "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    })
}

fn webhooks() -> &'static Webhooks {
    static RUNNING: OnceLock<Webhooks> = OnceLock::new();
    RUNNING.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || tokio::runtime::Runtime::new().unwrap().block_on(serve(&sender)));
        receiver.recv().unwrap()
    })
}

async fn serve(sender: &std::sync::mpsc::Sender<Webhooks>) {
    let clock = koord_runtime::clock::SystemClock::shared();
    let made = certificates::decide(None, "127.0.0.1", false, clock.now()).unwrap().set;
    let certificate = std::sync::Arc::new(HotCertificate::default());
    certificate.swap(&made).unwrap();
    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap());
    let mut service = ServiceBuilder::new(metrics.unwrap(), clock);
    for (path, change) in ANSWERS {
        service = service.page(path, |body| {
            let mut review = honest(body);
            change(&mut review);
            Page { body: review.to_string().into_bytes(), ..Page::default() }
        });
    }
    service = service.page("/no-json", |_| Page { body: b"hello".to_vec(), ..Page::default() });
    service =
        service.page("/breaks", |_| Page { status: http::StatusCode::INTERNAL_SERVER_ERROR, body: b"broken".to_vec() });
    let listener = koord_listen::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    sender.send(Webhooks { address, authority: made.ca_certs.clone() }).unwrap();
    let tls = koord_webhook_server::tls(certificate).unwrap();
    let server = koord_listen::Server::new(koord_listen::Limits::default());
    server.serve(listener, Some(tls), service.build().router(), std::future::pending()).await;
}

/// A kind `size` in v1, which is stored, and `width` in v2, converted by the webhook of a path.
fn definition(group: &str, path: &str) -> Value {
    let webhooks = webhooks();
    let version = |name: &str, field: &str| {
        json!({"name": name, "served": true, "storage": name == "v1",
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    field: {"type": "integer"}, "mode": {"type": "string", "default": format!("of-{name}")}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boxes.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [version("v1", "size"), version("v2", "width")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://{}{path}", webhooks.address),
                    "caBundle": base64(&webhooks.authority),
                }}},
        },
    })
}

fn base64(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

/// A kind whose webhook is at a path, in a scene.
struct Boxes<'a> {
    scene: &'a Scene<'a>,
    group: String,
}

impl<'a> Boxes<'a> {
    fn converted_by(scene: &'a Scene<'a>, path: &str) -> Self {
        let group = format!("{}.{}.example.com", &path[1..], scene.namespace);
        scene.accepts(&definition(&group, path).to_string());
        let boxes = Boxes { scene, group };
        scene.comes_to_say(&["get", "--raw", &boxes.path("v2", "")], "BoxList");
        boxes
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/boxes{name}", self.group, self.scene.namespace)
    }

    fn object(&self, version: &str, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("{}/{version}", self.group), "kind": "Box", "metadata": {"name": name}, "spec": spec})
    }

    /// Creates an object through its version; what kubectl prints on success or failure.
    fn create(&self, version: &str, name: &str, spec: &Value) -> String {
        let file = self.scene.file(&self.object(version, name, spec).to_string());
        let printed = self.scene.run(&["create", "--raw", &self.path(version, ""), "-f", &file], None);
        self.named(if printed.code == 0 { &printed.stdout } else { &printed.stderr })
    }

    fn get(&self, version: &str, name: &str) -> String {
        let printed = self.scene.run(&["get", "--raw", &self.path(version, name)], None);
        self.named(if printed.code == 0 { &printed.stdout } else { &printed.stderr })
    }

    /// Without the parts that differ from scene to scene.
    fn named(&self, text: &str) -> String {
        text.replace(&self.group, "GROUP").replace(&webhooks().address.to_string(), "ADDRESS").trim().to_owned()
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no object: {text}"))
}

#[test]
fn objects_are_stored_in_one_version_and_served_in_both() {
    on_every_server(|scene| {
        let boxes = Boxes::converted_by(scene, "/good");
        let made = parsed(&boxes.create("v2", "a", &json!({"width": 3})));
        assert_eq!(made["spec"], json!({"width": 3, "mode": "of-v2"}), "{made}");
        let stored = parsed(&boxes.get("v1", "/a"));
        assert_eq!(stored["spec"], json!({"size": 3, "mode": "of-v2"}));
        assert_eq!(stored["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
        parsed(&boxes.create("v1", "b", &json!({"size": 5})));
        let list = parsed(&boxes.get("v2", ""));
        let widths: Vec<_> =
            list["items"].as_array().unwrap().iter().map(|item| item["spec"]["width"].clone()).collect();
        assert_eq!((&list["apiVersion"], widths), (&json!("GROUP/v2"), vec![json!(3), json!(5)]));

        let resource = format!("boxes.v2.{}", boxes.group);
        scene.says(&["patch", &resource, "b", "--type=merge", "-p", r#"{"spec":{"width":6}}"#]);
        assert_eq!(parsed(&boxes.get("v1", "/b"))["spec"]["size"], 6);
        // Nothing changes, so nothing is written.
        let before = parsed(&boxes.get("v1", "/b"))["metadata"]["resourceVersion"].clone();
        scene.says(&["patch", &resource, "b", "--type=merge", "-p", r#"{"spec":{"width":6}}"#]);
        assert_eq!(parsed(&boxes.get("v1", "/b"))["metadata"]["resourceVersion"], before);
        scene.says(&[
            "patch",
            &resource,
            "b",
            "--subresource=status",
            "--type=merge",
            "-p",
            r#"{"status":{"phase":"x"}}"#,
        ]);
        assert_eq!(parsed(&boxes.get("v1", "/b"))["status"]["phase"], "x");
        let applied = boxes.object("v2", "c", &json!({"width": 9}));
        let file = scene.file(&applied.to_string());
        scene.says(&["apply", "--server-side", "-f", &file]);
        scene.says(&["apply", "--server-side", "-f", &file]);
        assert_eq!(parsed(&boxes.get("v1", "/c"))["spec"]["size"], 9);

        // An end that waits for a finalizer, through the other version.
        scene.says(&[
            "patch",
            &resource,
            "a",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":["example.com/wait"]}}"#,
        ]);
        scene.says(&["delete", &resource, "a", "--wait=false"]);
        let ending = parsed(&boxes.get("v1", "/a"));
        assert_eq!((&ending["spec"]["size"], ending["metadata"]["deletionTimestamp"].is_string()), (&json!(3), true));
        scene.says(&["patch", &resource, "a", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]);
        scene.says(&["delete", &resource, "--all"]);
        assert_eq!(parsed(&boxes.get("v1", ""))["items"], json!([]));
    });
}

#[test]
fn a_watch_brings_objects_in_its_own_version() {
    on_every_server(|scene| {
        let boxes = Boxes::converted_by(scene, "/good");
        boxes.create("v1", "a", &json!({"size": 1}));
        let resource = format!("boxes.v2.{}", boxes.group);
        let seen = std::thread::scope(|both| {
            let watch = both.spawn(|| {
                let columns = "-o=jsonpath={.spec.width}{\"\\n\"}";
                scene.run(&["get", &resource, "--watch", columns, "--request-timeout=6s"], None).stdout
            });
            std::thread::sleep(std::time::Duration::from_secs(2));
            boxes.create("v1", "b", &json!({"size": 2}));
            scene.says(&["delete", &format!("boxes.v1.{}", boxes.group), "a"]);
            watch.join().unwrap()
        });
        assert_eq!(seen, "1\n2\n1\n");
    });
}

#[test]
fn an_answer_that_cannot_be_right_is_refused_in_the_same_words_everywhere() {
    on_every_server(|scene| {
        let about = "conversion webhook for GROUP/v1, Kind=Box";
        let cases = [
            ("/another-uid", " failed: expected response.uid="),
            ("/nothing", " returned 0 objects, expected 1"),
            (
                "/another-version",
                " returned invalid object at index 0: invalid groupVersion (expected GROUP/v2, received wrong.example.com/v9)",
            ),
            ("/another-kind", " returned invalid object at index 0: invalid kind (expected Box, received Wrong)"),
            ("/another-name", " returned invalid object: must have the same name: a != wrong"),
            ("/another-identity", " returned invalid object: must have the same UID: "),
            ("/no-metadata", " returned invalid object: must have the same name: a !="),
            (
                "/bad-label",
                " returned invalid metadata: metadata.labels: Invalid value: \"not a label\": name part must consist of",
            ),
            (
                "/label-number",
                " returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            ),
            ("/refuses", " failed: no room for it"),
            ("/unsure", " failed: response.result.status was 'Maybe', not 'Success'"),
            ("/no-response", " failed: no response provided"),
            (
                "/another-review",
                r#" failed: no kind "AdmissionReview" is registered for version "apiextensions.k8s.io/v1""#,
            ),
            ("/breaks", " failed: an error on the server (\"broken\") has prevented the request from succeeding"),
        ];
        for (path, wanted) in cases {
            let boxes = Boxes::converted_by(scene, path);
            let made = parsed(&boxes.create("v1", "a", &json!({"size": 1})));
            assert_eq!(made["spec"]["size"], 1, "the stored version needs nobody");
            let converted = boxes.get("v2", "/a");
            let start = format!("Error from server: {about}{wanted}");
            assert!(converted.starts_with(&start), "{path}:\n{converted}\n{start}");
            assert!(boxes.get("v2", "").starts_with(&start), "{path}: a list fails like a get");
            let refused = boxes.create("v2", "b", &json!({"width": 1}));
            assert!(refused.starts_with("Error from server: conversion webhook for GROUP/v2, Kind=Box"), "{refused}");
            assert!(!boxes.get("v1", "").contains("\"b\""), "nothing is stored");
        }
    });
}

#[test]
fn labels_may_change_and_unknown_fields_are_dropped() {
    on_every_server(|scene| {
        let boxes = Boxes::converted_by(scene, "/new-label");
        boxes.create("v1", "a", &json!({"size": 1}));
        assert_eq!(parsed(&boxes.get("v2", "/a"))["metadata"]["labels"], json!({"added": "yes"}));
        let boxes = Boxes::converted_by(scene, "/unknown-field");
        boxes.create("v1", "a", &json!({"size": 1}));
        assert_eq!(parsed(&boxes.get("v2", "/a"))["spec"], json!({"width": 1, "mode": "of-v1"}));
    });
}
