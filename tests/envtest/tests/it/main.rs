//! The embedded server as `kube::Client` sees it, without a socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_server;
mod certificate_requests;
mod controllers;
mod custom_resources;
mod definitions;
mod joining;
mod kubelets;
mod nesting;
mod node_identity;
mod pages;
mod resource_slices;
mod watches;

use envtest::{
    environment::SeededEnvironment,
    faults::{Fault, Rule},
    journal::Journal,
    request::ApiRequest,
    shell::{Parts, Server},
    status::ApiError,
};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;

use crate::api_server::Core;

fn server() -> Server {
    Server::new(api_server::empty(), Parts::default())
}

fn client(server: &Server) -> Client {
    Client::new(server.router(), "default")
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some([("k".to_owned(), value.to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn with_namespace(client: &Client, name: &str) -> Api<ConfigMap> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    Api::namespaced(client.clone(), name)
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert_eq!(made.metadata.creation_timestamp.unwrap().0.to_string(), "2026-01-02T03:04:05Z");
    assert!(made.metadata.uid.is_some());

    let patch = Patch::Merge(serde_json::json!({"data": {"k": "2"}}));
    let changed = maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(changed.data.unwrap()["k"], "2");

    let mut stale = config_map("a", "3");
    stale.metadata.resource_version = made.metadata.resource_version;
    let error = maps.replace("a", &PostParams::default(), &stale).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_follows_a_selection() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    let mut events = maps.watch(&WatchParams::default().labels("s=on"), "0").await.unwrap().boxed();
    let mut map = config_map("a", "1");
    maps.create(&PostParams::default(), &map).await.unwrap();
    map.metadata.labels = Some([("s".to_owned(), "on".to_owned())].into());
    maps.replace("a", &PostParams::default(), &map).await.unwrap();
    map.metadata.labels = None;
    let left = maps.replace("a", &PostParams::default(), &map).await.unwrap();

    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
    let Some(WatchEvent::Deleted(gone)) = events.try_next().await.unwrap() else { panic!("it left the selection") };
    assert_eq!(gone.metadata.labels.unwrap()["s"], "on");
    assert_eq!(gone.metadata.resource_version, left.metadata.resource_version);
}

#[tokio::test]
async fn a_list_comes_in_pages_of_one_state() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items[0].metadata.name.as_deref(), Some("c"));
    assert_eq!(rest.metadata.continue_.as_deref().unwrap_or_default(), "");
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn owned_by(owner: &serde_json::Value, name: &str) -> serde_json::Value {
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({"metadata": {"name": name, "ownerReferences": [reference]}})
}

#[test]
fn dependents_follow_their_owner() {
    let mut core = Core::new();
    let owner = core.create(MAPS, &json!({"metadata": {"name": "owner"}}));
    let child = core.create(MAPS, &owned_by(&owner, "child"));
    core.create(MAPS, &owned_by(&child, "grandchild"));
    core.collect_garbage();
    assert!(core.exists(&format!("{MAPS}/grandchild")));
    core.ask(http::Method::DELETE, &format!("{MAPS}/owner"), &serde_json::Value::Null);
    core.collect_garbage();
    assert!(!core.exists(&format!("{MAPS}/child")));
    assert!(!core.exists(&format!("{MAPS}/grandchild")));
}

#[test]
fn a_foreground_deletion_waits_for_dependents() {
    let mut core = Core::new();
    let owner = core.create(MAPS, &json!({"metadata": {"name": "owner"}}));
    let mut child = owned_by(&owner, "child");
    child["metadata"]["finalizers"] = json!(["x.y/z"]);
    core.create(MAPS, &child);
    core.ask(http::Method::DELETE, &format!("{MAPS}/owner"), &json!({"propagationPolicy": "Foreground"}));
    core.collect_garbage();
    assert!(core.exists(&format!("{MAPS}/owner")), "its child is held by a finalizer");
    let mut patch = ApiRequest::new(
        http::Method::PATCH,
        &format!("{MAPS}/child"),
        json!({"metadata": {"finalizers": null}}).to_string(),
    );
    patch.content_type = "application/merge-patch+json".to_owned();
    core.send(&patch);
    core.collect_garbage();
    assert!(!core.exists(&format!("{MAPS}/child")));
    assert!(!core.exists(&format!("{MAPS}/owner")));
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let mut core = Core::new();
    let owner = core.create(MAPS, &json!({"metadata": {"name": "owner"}}));
    core.create(MAPS, &owned_by(&owner, "child"));
    core.ask(http::Method::DELETE, &format!("{MAPS}/owner"), &json!({"propagationPolicy": "Orphan"}));
    core.collect_garbage();
    assert!(!core.exists(&format!("{MAPS}/owner")));
    let (code, child) = core.ask(http::Method::GET, &format!("{MAPS}/child"), &serde_json::Value::Null);
    assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None));
}

#[test]
fn a_namespace_ends_with_all_it_holds() {
    let mut core = Core::new();
    core.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
    core.create("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "a"}}));
    let held = json!({"metadata": {"name": "s", "finalizers": ["x.y/z"]}});
    core.create("/api/v1/namespaces/n/secrets", &held);
    core.ask(http::Method::DELETE, "/api/v1/namespaces/n", &serde_json::Value::Null);
    core.collect_garbage();
    assert!(!core.exists("/api/v1/namespaces/n/configmaps/a"));
    assert!(core.exists("/api/v1/namespaces/n"), "a secret is held by a finalizer");
    let (_, mut secret) = core.ask(http::Method::GET, "/api/v1/namespaces/n/secrets/s", &serde_json::Value::Null);
    secret["metadata"]["finalizers"] = json!([]);
    core.ask(http::Method::PUT, "/api/v1/namespaces/n/secrets/s", &secret);
    core.collect_garbage();
    assert!(!core.exists("/api/v1/namespaces/n"));
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut one = Core::new();
    one.create("/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
    one.create("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "a"}}));
    let mut another = one.fork(Box::new(SeededEnvironment::new(2, Timestamp::UNIX_EPOCH)));
    one.ask(http::Method::DELETE, "/api/v1/namespaces/n/configmaps/a", &serde_json::Value::Null);
    another.create("/api/v1/namespaces/n/configmaps", &json!({"metadata": {"name": "b"}}));
    assert_eq!(
        [one.exists("/api/v1/namespaces/n/configmaps/a"), another.exists("/api/v1/namespaces/n/configmaps/a")],
        [false, true]
    );
    assert_eq!(
        [one.exists("/api/v1/namespaces/n/configmaps/b"), another.exists("/api/v1/namespaces/n/configmaps/b")],
        [false, true]
    );
}

#[tokio::test]
async fn faults_befall_requests_and_watches() {
    let server = server();
    let maps = with_namespace(&client(&server), "n").await;
    let mut events = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    server.faults().add(Rule::next("create", "configmaps", Fault::LoseAnswer(ApiError::unclassified("lost"))));
    let error = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 500));
    assert!(maps.get_opt("a").await.unwrap().is_some(), "the write was carried out");
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(_))));

    server.faults().add(Rule::next("watch", "configmaps", Fault::DropEvent));
    maps.create(&PostParams::default(), &config_map("unseen", "1")).await.unwrap();
    tokio::task::yield_now().await;
    server.faults().add(Rule::next("watch", "configmaps", Fault::Expire).after(1));
    maps.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    maps.create(&PostParams::default(), &config_map("c", "1")).await.unwrap();
    let Some(WatchEvent::Added(seen)) = events.try_next().await.unwrap() else { panic!("an event was due") };
    assert_eq!(seen.metadata.name.as_deref(), Some("b"), "the event of `unseen` was dropped");
    assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Error(status)) if status.code == 410));

    server.faults().add(Rule::next("list", "configmaps", Fault::StaleList(1)));
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 3);
    assert_eq!(maps.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn objects_and_definitions_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let (journal, contents) = Journal::open(folder.path()).unwrap();
        let mut core = api_server::empty();
        core.restore(contents);
        core.start_journal();
        Server::new(core, Parts { journal: Some(journal), ..Parts::default() })
    };
    let widgets = "/apis/example.com/v1/namespaces/n/widgets";
    let server = start();
    let maps = with_namespace(&client(&server), "n").await;
    let made = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    maps.create(&PostParams::default(), &config_map("gone", "1")).await.unwrap();
    maps.delete("gone", &DeleteParams::default()).await.unwrap();
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}}],
        },
    });
    let post = |path: &str, body: serde_json::Value| ApiRequest::new(http::Method::POST, path, body.to_string());
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.answer(&post(path, definition)).await.unwrap().code, 201);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 1}});
    assert_eq!(server.answer(&post(widgets, widget)).await.unwrap().code, 201);
    drop((maps, server));
    // The client's own task lets go of the server when it runs next.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }

    let server = start();
    let maps: Api<ConfigMap> = Api::namespaced(client(&server), "n");
    assert_eq!(maps.get("a").await.unwrap(), made);
    assert!(maps.get_opt("gone").await.unwrap().is_none());
    let read = ApiRequest::new(http::Method::GET, &format!("{widgets}/w"), "");
    let answer: serde_json::Value = serde_json::from_slice(&server.answer(&read).await.unwrap().body).unwrap();
    assert_eq!(answer["spec"]["n"], 1);
    let next = maps.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    let revision = |map: &ConfigMap| map.metadata.resource_version.as_ref().unwrap().parse::<u64>().unwrap();
    assert!(revision(&next) > revision(&made));
}

#[test]
fn storage_and_network_kinds_are_stored_unchecked() {
    let bodies = [
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}),
        ),
        ("/api/v1/persistentvolumes", json!({"apiVersion": "v1", "kind": "PersistentVolume"})),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": ""}),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}),
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}, "policyTypes": ["Sideways"]}}),
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv9", "endpoints": []}),
        ),
    ];
    let mut core = Core::new();
    for (path, mut body) in bodies {
        body["metadata"] = json!({"name": "x"});
        core.create(path, &body);
    }
}

#[test]
fn a_jobs_status_may_come_in_any_order() {
    let mut core = Core::new();
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": template}});
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let mut job = core.create(jobs, &job);
    for status in
        [json!({"succeeded": 2}), json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})]
    {
        job["status"] = status;
        let (code, stored) = core.ask(http::Method::PUT, &format!("{jobs}/x/status"), &job);
        assert_eq!((code, &stored["status"]["succeeded"]), (200, &job["status"]["succeeded"]));
        job = stored;
    }
}

#[test]
fn a_changed_template_of_a_job_is_shown_as_json() {
    let mut core = Core::new();
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": template}});
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let mut job = core.create(jobs, &job);
    job["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    let (code, answer) = core.ask(http::Method::PUT, &format!("{jobs}/x"), &job);
    let message = answer["message"].as_str().unwrap_or_default();
    assert_eq!(code, 422);
    assert!(message.contains(r#""restartPolicy":"Never""#) && message.ends_with("field is immutable"), "{message}");
}

#[test]
fn both_groups_select_the_same_events() {
    let mut core = Core::new();
    let namespace = "namespaces/default/events";
    for (name, path, body) in [
        (
            "old",
            format!("/api/v1/{namespace}"),
            json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}),
        ),
        (
            "new",
            format!("/apis/events.k8s.io/v1/{namespace}"),
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
                "eventTime": "2024-01-01T00:00:00.000000Z", "reportingController": "example.com/c", "reportingInstance": "i",
                "action": "A", "reason": "R", "type": "Normal"}),
        ),
    ] {
        let mut body = body;
        body["metadata"] = json!({"name": name});
        core.create(&path, &body);
    }
    for (path, field) in [
        (format!("/api/v1/{namespace}"), "involvedObject.name"),
        (format!("/apis/events.k8s.io/v1/{namespace}"), "regarding.name"),
    ] {
        let (code, list) =
            core.ask(http::Method::GET, &format!("{path}?fieldSelector={field}%3Dp"), &serde_json::Value::Null);
        assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(2)), "{field}");
        let (_, list) =
            core.ask(http::Method::GET, &format!("{path}?fieldSelector={field}%3Dq"), &serde_json::Value::Null);
        assert_eq!(list["items"], json!([]), "{field}");
    }
}
