//! What kubelets may ask and write, as with `--authorization-mode=Node,RBAC` and the admission plugin NodeRestriction.

use std::sync::Arc;

use axum::{Router, body::Body, extract::Request};
use envtest::{
    auth::{self, reviews::Reviews, tokens::Tokens},
    cluster::standard_core,
    environment::SeededEnvironment,
    pages::StandardPages,
    request::User,
    shell::{Pages, Parts, Server},
    store::HistoryLimits,
};
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server with two nodes, `n` with pods of its own and `other` with one.
struct Stage {
    server: Server,
    router: Router,
}

impl Stage {
    async fn new() -> Self {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut tokens = Tokens::new(b"k");
        let node = |name: &str| User {
            name: format!("system:node:{name}"),
            groups: vec!["system:nodes".to_owned()],
            ..User::default()
        };
        tokens.add("n", node("n"));
        tokens.add("nobody", node(""));
        let tokens = Arc::new(tokens);
        let core = standard_core(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default(), None).unwrap();
        let pages: Vec<Box<dyn Pages>> =
            vec![Box::new(StandardPages::default()), Box::new(Reviews::new(Arc::clone(&tokens)))];
        let server = Server::new(core, Parts { pages, ..Parts::default() });
        let router = auth::guarded(&server, tokens, None);
        let stage = Self { server, router };
        for name in ["n", "other"] {
            stage.create("/api/v1/nodes", json!({"metadata": {"name": name}})).await;
        }
        for (name, node, secret) in [("mine", "n", "used"), ("theirs", "other", "foreign")] {
            let volumes = json!([
                {"name": "s", "secret": {"secretName": secret}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}},
            ]);
            let spec = json!({"nodeName": node, "serviceAccountName": name, "volumes": volumes,
                "containers": [{"name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": "env"}}]}]});
            stage.create("/api/v1/namespaces/default/pods", json!({"metadata": {"name": name}, "spec": spec})).await;
            stage.create("/api/v1/namespaces/default/secrets", json!({"metadata": {"name": secret}})).await;
            stage.create("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": name}})).await;
        }
        stage.create("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "env"}})).await;
        stage
    }

    async fn create(&self, path: &str, object: Value) {
        let (code, answer) = self.server.send(Method::POST, path, &object).await;
        assert_eq!(code, 201, "{answer}");
    }

    async fn get(&self, path: &str) -> Value {
        self.server.send(Method::GET, path, &Value::Null).await.1
    }

    /// Code and message, or the object, of what the kubelet with this token is answered.
    async fn ask(&self, token: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", kind).body(Body::from(text)).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        if path.contains("watch=") && code == 200 {
            return (code, Value::Null);
        }
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn refused(&self, method: Method, path: &str, body: &Value) -> String {
        let (code, status) = self.ask("n", method, path, body).await;
        assert_eq!(code, 403, "{path}: {status}");
        let message = status["message"].as_str().unwrap();
        message.split_once(": ").map_or(message, |(_, why)| why).to_owned()
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_kubelet_reads_what_its_pods_need_and_nothing_else() {
    let stage = Stage::new().await;
    let allowed = [
        "/api/v1/nodes/n",
        "/api/v1/nodes?fieldSelector=metadata.name%3Dn",
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn",
        "/api/v1/namespaces/default/pods/mine",
        "/api/v1/namespaces/default/secrets/used",
        "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dused&watch=1",
        "/api/v1/namespaces/default/configmaps/env",
        "/api/v1/namespaces/default/serviceaccounts/mine",
        "/api/v1/services",
        "/apis/storage.k8s.io/v1/csidrivers",
        "/apis/node.k8s.io/v1/runtimeclasses",
        "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn",
        "/version",
    ];
    for path in allowed {
        assert_eq!(stage.ask("n", Method::GET, path, &Value::Null).await.0, 200, "{path}");
    }
    let unrelated = "no relationship found between node 'n' and this object";
    let table = [
        ("/api/v1/nodes", "node 'n' cannot read all nodes, only its own Node object"),
        ("/api/v1/nodes/other", "node 'n' cannot read 'other', only its own Node object"),
        ("/api/v1/pods", "can only list/watch pods with spec.nodeName field selector"),
        (
            "/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn",
            "can only list/watch pods with spec.nodeName field selector",
        ),
        ("/api/v1/namespaces/default/pods/theirs", unrelated),
        ("/api/v1/namespaces/default/secrets/foreign", unrelated),
        ("/api/v1/namespaces/default/secrets", "No Object name found"),
        ("/api/v1/secrets", "can only read namespaced object of this type"),
        ("/api/v1/namespaces/default/serviceaccounts/theirs", unrelated),
        ("/api/v1/persistentvolumeclaims", "can only get individual resources of this type"),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "can only list/watch/deletecollection resourceslices with nodeName field selector",
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/other",
            "can only access node lease with the same name as the requesting node",
        ),
    ];
    for (path, expected) in table {
        let why = stage.refused(Method::GET, path, &Value::Null).await;
        assert!(why.ends_with(expected), "{path}: {why}");
    }
    let (_, status) = stage.ask("n", Method::GET, "/api/v1/namespaces/default/secrets/foreign", &Value::Null).await;
    let whole = r#"secrets "foreign" is forbidden: User "system:node:n" cannot get resource "secrets" in API group "" in the namespace "default": no relationship found between node 'n' and this object"#;
    assert_eq!(status["message"], whole);
    assert_eq!(stage.ask("nobody", Method::GET, "/api/v1/services", &Value::Null).await.0, 403);
}

#[tokio::test]
async fn a_kubelet_writes_its_own_node_lease_and_slices() {
    let stage = Stage::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let named = |name: &str| json!({"metadata": {"name": name}});
    let slice = |node: &str| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        json!({"metadata": {"name": format!("s-{node}")}, "spec": {"nodeName": node, "driver": "d.io", "pool": pool}})
    };
    for (path, body) in [(leases, named("n")), (slices, slice("n"))] {
        let (code, answer) = stage.ask("n", Method::POST, path, &body).await;
        assert_eq!(code, 201, "{answer}");
    }
    let labels = json!({"metadata": {"labels": {"kubernetes.io/hostname": "n", "example.com/rack": "7"}}});
    assert_eq!(stage.ask("n", Method::PATCH, "/api/v1/nodes/n", &labels).await.0, 200);
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(stage.ask("n", Method::PATCH, "/api/v1/nodes/n/status", &ready).await.0, 200);
    let own = format!("{slices}?fieldSelector=spec.nodeName%3Dn");
    assert_eq!(stage.ask("n", Method::DELETE, &own, &Value::Null).await.0, 200);

    let table = [
        (Method::PATCH, "/api/v1/nodes/other".to_owned(), labels, r#"node "n" is not allowed to modify node "other""#),
        (
            Method::PATCH,
            "/api/v1/nodes/n".to_owned(),
            json!({"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b", "node-role.kubernetes.io/x": ""}}}),
            "is not allowed to modify labels: node-restriction.kubernetes.io/a, node-role.kubernetes.io/x",
        ),
        (
            Method::PATCH,
            "/api/v1/nodes/n".to_owned(),
            json!({"spec": {"taints": null}}),
            r#"node "n" is not allowed to modify taints"#,
        ),
        (
            Method::POST,
            leases.to_owned(),
            named("other"),
            "can only access node lease with the same name as the requesting node",
        ),
        (
            Method::POST,
            "/apis/storage.k8s.io/v1/csinodes".to_owned(),
            json!({"metadata": {"name": "other"}, "spec": {"drivers": []}}),
            "can only access CSINode with the same name as the requesting node",
        ),
        (
            Method::POST,
            slices.to_owned(),
            slice("other"),
            "can only create ResourceSlice with the same NodeName as the requesting node",
        ),
    ];
    for (method, path, body, expected) in table {
        let why = stage.refused(method, &path, &body).await;
        assert!(why.ends_with(expected), "{path}: {why}");
    }
}

#[tokio::test]
async fn a_kubelet_writes_the_status_of_its_pods_evicts_and_deletes_them() {
    let stage = Stage::new().await;
    let running = json!({"status": {"phase": "Running"}});
    assert_eq!(stage.ask("n", Method::PATCH, &format!("{PODS}/mine/status"), &running).await.0, 200);
    let labelled = json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}});
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let table = [
        (
            Method::PATCH,
            format!("{PODS}/theirs/status"),
            running,
            r#"node "n" can only update pod status for pods with spec.nodeName set to itself"#,
        ),
        (Method::PATCH, format!("{PODS}/mine/status"), labelled, r#"node "n" cannot update labels through pod status"#),
        (
            Method::POST,
            format!("{PODS}/theirs/eviction"),
            eviction("theirs"),
            "node n can only evict pods with spec.nodeName set to itself",
        ),
        (
            Method::DELETE,
            format!("{PODS}/theirs"),
            Value::Null,
            r#"node "n" can only delete pods with spec.nodeName set to itself"#,
        ),
    ];
    for (method, path, body, expected) in table {
        let why = stage.refused(method, &path, &body).await;
        assert!(why.ends_with(expected), "{path}: {why}");
    }
    let (code, answer) = stage.ask("n", Method::POST, &format!("{PODS}/mine/eviction"), &eviction("mine")).await;
    assert_eq!(code, 201, "{answer}");
    let (code, answer) =
        stage.ask("n", Method::DELETE, &format!("{PODS}/mine?gracePeriodSeconds=0"), &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_kubelet_creates_mirror_pods_of_its_own_alone() {
    let stage = Stage::new().await;
    let uid = stage.get("/api/v1/nodes/n").await["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid, "controller": true});
    let mirror = json!({
        "metadata": {"name": "static-n", "annotations": {"kubernetes.io/config.mirror": "h"}, "ownerReferences": [owner]},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let changed = |pointer: &str, value: Value| {
        let mut pod = mirror.clone();
        *pod.pointer_mut(pointer).unwrap() = value;
        pod
    };
    let mut with_secret = mirror.clone();
    with_secret["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": "foreign"}}]);
    let table = [
        (
            changed("/metadata/annotations", json!({})),
            r#"pod does not have "kubernetes.io/config.mirror" annotation, node "n" can only create mirror pods"#,
        ),
        (
            changed("/spec/nodeName", json!("other")),
            r#"node "n" can only create pods with spec.nodeName set to itself"#,
        ),
        (
            changed("/metadata/ownerReferences", json!([])),
            r#"node "n" can only create pods with an owner reference set to itself"#,
        ),
        (
            changed("/metadata/ownerReferences/0/controller", json!(false)),
            r#"node "n" can only create pods with a controller owner reference set to itself"#,
        ),
        (with_secret, r#"node "n" can not create pods that reference secrets"#),
    ];
    for (pod, expected) in table {
        let why = stage.refused(Method::POST, PODS, &pod).await;
        assert!(why.ends_with(expected), "{why}");
    }
    let (code, answer) = stage.ask("n", Method::POST, PODS, &mirror).await;
    assert_eq!(code, 201, "{answer}");
}

#[tokio::test]
async fn a_kubelet_gets_tokens_for_its_pods_and_their_audiences() {
    let stage = Stage::new().await;
    let uid = |pod: &'static str| {
        let stage = &stage;
        async move { stage.get(&format!("{PODS}/{pod}")).await["metadata"]["uid"].clone() }
    };
    let request = |pod: &str, uid: Value, audiences: &[&str]| {
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid});
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": audiences, "boundObjectRef": bound}})
    };
    let token = |account: &str| format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let (code, answer) =
        stage.ask("n", Method::POST, &token("mine"), &request("mine", uid("mine").await, &["vault"])).await;
    assert_eq!(code, 201, "{answer}");
    let why = stage.refused(Method::POST, &token("mine"), &request("mine", uid("mine").await, &["other"])).await;
    let expected = r#"audience "other" not found in pod spec volume, system:node:n is not authorized to request tokens for this audience"#;
    assert!(why.ends_with(expected), "{why}");
    let free = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    assert!(
        stage.refused(Method::POST, &token("mine"), &free).await.ends_with("node requested token not bound to a pod")
    );
    let foreign = request("theirs", uid("theirs").await, &["vault"]);
    let why = stage.refused(Method::POST, &token("mine"), &foreign).await;
    assert!(why.ends_with("node requested token bound to a pod scheduled on a different node"), "{why}");
    let why = stage.refused(Method::POST, &token("theirs"), &foreign).await;
    assert!(why.ends_with("no relationship found between node 'n' and this object"), "{why}");
}

#[tokio::test]
async fn a_kubelet_says_how_large_the_volume_of_a_claim_is_and_no_more() {
    let stage = Stage::new().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    stage.create(claims, claim).await;
    let status = format!("{claims}/data/status");
    let grown = json!({"status": {"capacity": {"storage": "2Gi"}}});
    let (code, answer) = stage.ask("n", Method::PATCH, &status, &grown).await;
    assert_eq!(code, 200, "{answer}");
    let why = stage.refused(Method::PATCH, &status, &json!({"status": {"phase": "Lost"}})).await;
    let expected = r#"node "n" is not allowed to update fields other than status.quantity and status.conditions"#;
    assert!(why.ends_with(expected), "{why}");
}
