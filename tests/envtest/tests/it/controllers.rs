//! A server alone does nothing by itself, as kube-apiserver; with controllers it does what kube-controller-manager does.

use std::time::Duration;

use envtest::{
    cluster::{Cluster, Controllers, Options},
    request::ApiRequest,
    shell::Server,
};
use http::Method;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.answer(&ApiRequest::new(method, path, body)).await.unwrap();
    (answer.code, serde_json::from_slice(&answer.body).unwrap())
}

/// Creates an object whose owner never existed, and deletes a namespace; then much time passes.
async fn after_an_hour(controllers: Option<Controllers>) -> Server {
    let cluster = Cluster::bind(Options { controllers, ..Options::default() }).await.unwrap();
    let server = cluster.server.clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "u"});
    let orphan = json!({"metadata": {"name": "orphan", "ownerReferences": [owner]}});
    assert_eq!(send(&server, Method::POST, MAPS, &orphan).await.0, 201);
    let namespace = json!({"metadata": {"name": "n"}});
    assert_eq!(send(&server, Method::POST, "/api/v1/namespaces", &namespace).await.0, 201);
    assert_eq!(send(&server, Method::DELETE, "/api/v1/namespaces/n", &Value::Null).await.0, 200);
    tokio::time::sleep(Duration::from_hours(1)).await;
    server
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_collects_no_garbage_and_creates_no_object() {
    let server = after_an_hour(None).await;
    assert_eq!(send(&server, Method::GET, &format!("{MAPS}/orphan"), &Value::Null).await.0, 200);
    let (code, namespace) = send(&server, Method::GET, "/api/v1/namespaces/n", &Value::Null).await;
    assert_eq!((code, namespace["status"]["phase"].as_str()), (200, Some("Terminating")));
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    assert_eq!(send(&server, Method::GET, account, &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn with_controllers_garbage_goes_namespaces_end_and_default_objects_are_there() {
    let server = after_an_hour(Some(Controllers::default())).await;
    assert_eq!(send(&server, Method::GET, &format!("{MAPS}/orphan"), &Value::Null).await.0, 404);
    assert_eq!(send(&server, Method::GET, "/api/v1/namespaces/n", &Value::Null).await.0, 404);
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    assert_eq!(send(&server, Method::GET, account, &Value::Null).await.0, 200);
}
