//! A kubelet comes to its certificate, and is known by it, as on a cluster that kubeadm has made.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use envtest::{
    cluster::{Cluster, Controllers, Options},
    serve::Owner,
    shell::Server,
};
use http::Method;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// A key, and a request for a certificate with it.
fn request(name: &str, organization: &str, hosts: &[&str]) -> (KeyPair, String) {
    let key = KeyPair::generate().unwrap();
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    (key, pem)
}

fn object(name: &str, pem: &str, signer: &str, usages: &[&str]) -> Value {
    let spec = json!({"request": BASE64.encode(pem), "signerName": signer, "usages": usages});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A running cluster with the bindings of kubeadm and one bootstrap token.
struct Running {
    server: Server,
    url: String,
    authority_pem: String,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

const TOKEN: &str = "abcdef.0123456789abcdef";

impl Running {
    async fn start() -> Self {
        let options = Options { controllers: Some(Controllers::default()), ..Options::default() };
        let cluster = Cluster::bind(options).await.unwrap();
        let (server, url) = (cluster.server.clone(), cluster.url());
        let authority_pem = cluster.kubeconfig(Owner::named("t")).authority_pem;
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(cluster.run(stopped));
        let running = Self { server, url, authority_pem, stop, serving };
        let role = |name: &str| format!("system:certificates.k8s.io:certificatesigningrequests:{name}");
        for (name, role, group) in [
            ("kubelet-bootstrap", "system:node-bootstrapper".to_owned(), "system:bootstrappers"),
            ("node-autoapprove-bootstrap", role("nodeclient"), "system:bootstrappers"),
            ("node-autoapprove-certificate-rotation", role("selfnodeclient"), "system:nodes"),
        ] {
            let api_group = "rbac.authorization.k8s.io";
            running
                .create(
                    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                    &json!({"metadata": {"name": name},
                        "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": role},
                        "subjects": [{"apiGroup": api_group, "kind": "Group", "name": group}]}),
                )
                .await;
        }
        let data =
            json!({"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"});
        let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": data});
        running.create("/api/v1/namespaces/kube-system/secrets", &secret).await;
        running
    }

    async fn create(&self, path: &str, object: &Value) {
        let (code, answer) = self.server.send(Method::POST, path, object).await;
        assert_eq!(code, 201, "{answer}");
    }

    async fn get(&self, path: &str) -> Value {
        self.server.send(Method::GET, path, &Value::Null).await.1
    }

    /// Code and body of what a client is answered over TLS, with a certificate or a token of its own.
    async fn ask(
        &self,
        identity: Option<(&[u8], &KeyPair)>,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority_pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((pem, key)) => {
                let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
                let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let stream = TcpStream::connect(self.url.trim_start_matches("https://")).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{token}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The server may close without a last word of TLS.
        let _ = stream.read_to_end(&mut answer).await;
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, serde_json::from_str(body).unwrap_or_default())
    }

    /// The certificate that a request was given, if any.
    async fn certificate(&self, name: &str) -> Option<Vec<u8>> {
        let stored = self.get(&format!("{REQUESTS}/{name}")).await;
        BASE64.decode(stored["status"]["certificate"].as_str()?).ok()
    }

    async fn condition(&self, name: &str) -> (String, String) {
        let stored = self.get(&format!("{REQUESTS}/{name}")).await;
        let condition =
            stored["status"]["conditions"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("type"), text("message"))
    }

    async fn approve(&self, name: &str) {
        let path = format!("{REQUESTS}/{name}");
        let mut stored = self.get(&path).await;
        stored["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "Fine"}]);
        let (code, answer) = self.server.send(Method::PUT, &format!("{path}/approval"), &stored).await;
        assert_eq!(code, 200, "{answer}");
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_kubelet_with_a_bootstrap_token_gets_a_certificate_and_is_known_by_it() {
    let running = Running::start().await;
    let (key, pem) = request("system:node:n", "system:nodes", &[]);
    let asked = object("first", &pem, KUBELET_CLIENT, &["client auth", "digital signature"]);
    let (code, answer) = running.ask(None, Some(TOKEN), "POST", REQUESTS, &asked).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["spec"]["username"], "system:bootstrap:abcdef");
    let (decision, message) = running.condition("first").await;
    let expected = "Auto approving kubelet client certificate after SubjectAccessReview.";
    assert_eq!((decision.as_str(), message.as_str()), ("Approved", expected));
    let certificate = running.certificate("first").await.unwrap();

    let identity = Some((certificate.as_slice(), &key));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (code, answer) = running.ask(identity, None, "POST", path, &review).await;
    let user = &answer["status"]["userInfo"];
    assert_eq!((code, &user["username"]), (201, &json!("system:node:n")), "{answer}");
    assert_eq!(user["groups"], json!(["system:nodes", "system:authenticated"]));
    let credential = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert!(credential.starts_with("X509SHA256=") && credential.len() == "X509SHA256=".len() + 64, "{credential}");
    let node = json!({"metadata": {"name": "n"}});
    assert_eq!(running.ask(identity, None, "POST", "/api/v1/nodes", &node).await.0, 201);
    let (code, _) = running.ask(identity, None, "POST", "/api/v1/nodes", &json!({"metadata": {"name": "o"}})).await;
    assert_eq!(code, 403);

    // What it renews, it may have as itself.
    let (_, pem) = request("system:node:n", "system:nodes", &[]);
    let asked = object("renewed", &pem, KUBELET_CLIENT, &["client auth", "digital signature", "key encipherment"]);
    assert_eq!(running.ask(identity, None, "POST", REQUESTS, &asked).await.0, 201);
    let expected = "Auto approving self kubelet client certificate after SubjectAccessReview.";
    assert_eq!(running.condition("renewed").await, ("Approved".to_owned(), expected.to_owned()));
    assert!(running.certificate("renewed").await.is_some());
    let (_, pem) = request("system:node:o", "system:nodes", &[]);
    let asked = object("foreign", &pem, KUBELET_CLIENT, &["client auth", "digital signature"]);
    let (code, answer) = running.ask(identity, None, "POST", REQUESTS, &asked).await;
    assert_eq!(code, 403);
    assert!(
        answer["message"].as_str().unwrap().ends_with("can only create a node CSR with CN=system:node:n"),
        "{answer}"
    );
    running.stop().await;
}

#[tokio::test]
async fn certificates_of_others_are_no_identity_and_cut_nobody_off() {
    let running = Running::start().await;
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap().pem();
    let identity = Some((own.as_bytes(), &key));
    let (code, answer) = running.ask(identity, None, "GET", "/api/v1/nodes", &Value::Null).await;
    assert_eq!((code, &answer["message"]), (401, &json!("Unauthorized")));
    let (code, _) = running.ask(identity, Some(TOKEN), "GET", REQUESTS, &Value::Null).await;
    assert_eq!(code, 200, "the token counts");
    let (code, answer) = running.ask(None, None, "GET", "/api/v1/nodes", &Value::Null).await;
    assert_eq!(code, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("system:anonymous"));
    running.stop().await;
}

#[tokio::test]
async fn approved_requests_are_signed_where_they_are_what_their_signer_signs() {
    let running = Running::start().await;
    let client = "kubernetes.io/kube-apiserver-client";
    let serving = "kubernetes.io/kubelet-serving";
    let signed = [
        ("jane", "jane", "devs", &[][..], client, &["client auth"][..]),
        ("server", "system:node:n", "system:nodes", &["n", "10.0.0.7"], serving, &["server auth", "digital signature"]),
    ];
    for (name, subject, organization, hosts, signer, usages) in signed {
        let (_, pem) = request(subject, organization, hosts);
        running.create(REQUESTS, &object(name, &pem, signer, usages)).await;
        assert!(running.certificate(name).await.is_none(), "{name}: nobody has approved it");
        running.approve(name).await;
        let certificate = running.certificate(name).await.unwrap();
        assert!(certificate.starts_with(b"-----BEGIN CERTIFICATE-----\n"), "{name}");
    }
    let refused = [
        (
            "u",
            "jane",
            "devs",
            &[][..],
            client,
            &["client auth", "server auth"][..],
            "invalid usage for client certificate: server auth",
        ),
        (
            "m",
            "jane",
            "devs",
            &[],
            client,
            &["digital signature"],
            "missing required usage for client certificate: client auth",
        ),
        (
            "o",
            "system:node:n",
            "devs",
            &[],
            KUBELET_CLIENT,
            &["client auth", "digital signature"],
            "subject organization is not system:nodes",
        ),
        (
            "d",
            "system:node:n",
            "system:nodes",
            &["n"],
            KUBELET_CLIENT,
            &["client auth", "digital signature"],
            "DNS subjectAltNames are not allowed",
        ),
        (
            "n",
            "jane",
            "system:nodes",
            &[],
            KUBELET_CLIENT,
            &["client auth", "digital signature"],
            "subject common name does not begin with system:node:",
        ),
        (
            "k",
            "system:node:n",
            "system:nodes",
            &[],
            KUBELET_CLIENT,
            &["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (
            "h",
            "system:node:n",
            "system:nodes",
            &[],
            serving,
            &["server auth", "digital signature"],
            "DNS or IP subjectAltName is required",
        ),
    ];
    for (name, subject, organization, hosts, signer, usages, expected) in refused {
        let (_, pem) = request(subject, organization, hosts);
        running.create(REQUESTS, &object(name, &pem, signer, usages)).await;
        running.approve(name).await;
        assert_eq!(running.condition(name).await, ("Failed".to_owned(), expected.to_owned()));
        assert!(running.certificate(name).await.is_none());
    }
    let (_, pem) = request("x", "y", &[]);
    running.create(REQUESTS, &object("other", &pem, "example.com/signer", &["client auth"])).await;
    running.approve("other").await;
    assert_eq!(running.condition("other").await.0, "Approved", "its own signer signs it");
    running.stop().await;
}
