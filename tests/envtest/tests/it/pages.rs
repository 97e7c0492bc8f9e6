//! Pages beside the resources, and the forms of bodies: where the embedded server differs from kube-apiserver.

use std::time::Duration;

use axum::body::Body;
use envtest::{
    cluster::{Cluster, Options},
    environment::SeededEnvironment,
    kinds,
    server::{Admitted, ApiServer, Review},
    shell::{Admission, Parts, Server},
    status::ApiError,
    store::HistoryLimits,
};
use futures::future::BoxFuture;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use tower::ServiceExt as _;

async fn ask(router: axum::Router, request: Request<Body>) -> (StatusCode, String, String) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}

/// A whole server with an administrator.
struct Whole {
    router: axum::Router,
    _tokens: tempfile::NamedTempFile,
}

impl Whole {
    async fn new() -> Self {
        let tokens = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(tokens.path(), "admin-token,admin,uid,system:masters\n").unwrap();
        let options = Options { token_file: Some(tokens.path().to_owned()), ..Options::default() };
        Self { router: Cluster::bind(options).await.unwrap().router(), _tokens: tokens }
    }

    async fn get(&self, path: &str, accept: &str) -> (StatusCode, String, String) {
        let request = Request::get(path).header("authorization", "Bearer admin-token").header("accept", accept);
        ask(self.router.clone(), request.body(Body::empty()).unwrap()).await
    }
}

#[tokio::test]
async fn discovery_is_json() {
    let server = Whole::new().await;
    let accept =
        "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (status, content_type, body) = server.get("/apis", accept).await;
    assert_eq!(status, StatusCode::OK);
    assert!(content_type.starts_with("application/json"), "{content_type}");
    assert!(body.starts_with('{'), "{body:.60}");
}

#[tokio::test]
async fn metrics_and_keys_of_tokens_are_not_served() {
    let server = Whole::new().await;
    for path in ["/metrics", "/.well-known/openid-configuration", "/openid/v1/jwks"] {
        assert_eq!(server.get(path, "*/*").await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn yaml_has_the_messages_of_its_parser() {
    let server = Whole::new().await;
    for (body, message) in [
        ("metadata: {name: a", "unclosed bracket '{' at line 1, column 11"),
        ("metadata: {name: a}\ndata: {k: x, k: y}", "stands twice in one mapping"),
    ] {
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("authorization", "Bearer admin-token")
            .header("content-type", "application/yaml");
        let (status, _, answer) = ask(server.router.clone(), request.body(Body::from(body)).unwrap()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(answer.contains(message), "{answer}");
    }
}

/// A webhook that takes its time.
struct Slow(Duration);

impl Admission for Slow {
    fn review<'a>(&'a self, _: &'a Server, _: &'a Review) -> BoxFuture<'a, Result<Admitted, ApiError>> {
        Box::pin(async {
            tokio::time::sleep(self.0).await;
            Ok(Admitted::default())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_may_take_as_long_as_its_client_allows() {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
    kinds::install(&mut core);
    envtest::bootstrap::run(&mut core).unwrap();
    let admission = Some(Box::new(Slow(Duration::from_secs(90))) as Box<dyn Admission>);
    let server = Server::new(core, Parts { admission, ..Parts::default() });
    let post = |path: &str, name: &str| {
        let body = json!({"metadata": {"name": name}}).to_string();
        ask(
            server.router(),
            Request::post(path).header("content-type", "application/json").body(Body::from(body)).unwrap(),
        )
    };
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(post(webhooks, "w").await.0, StatusCode::CREATED);
    let maps = "/api/v1/namespaces/default/configmaps";
    let (status, _, body) = post(&format!("{maps}?timeout=5s"), "late").await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    assert!(body.contains("request did not complete within requested timeout"), "{body}");
    assert_eq!(post(&format!("{maps}?timeout=2m"), "in-time").await.0, StatusCode::CREATED);
    assert_eq!(post(maps, "unlimited").await.0, StatusCode::CREATED);
    let list = Request::get(maps).body(Body::empty()).unwrap();
    let (_, _, list) = ask(server.router(), list).await;
    assert!(list.contains("in-time") && list.contains("unlimited") && !list.contains("late"), "{list}");
    assert_eq!(post(&format!("{maps}?timeout=5"), "wrong").await.0, StatusCode::BAD_REQUEST);
}
