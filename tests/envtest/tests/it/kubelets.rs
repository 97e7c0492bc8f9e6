//! Logs, commands and ports of pods on a node with a kubelet, and what else it serves.

use std::{io, net::SocketAddr, sync::Arc};

use axum::{Router, body::Body, extract::Request, response::Response};
use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
    server::{Admitted, Review, Scheme},
    shell::{Admission, BoxFuture, Connection, Dial, Parts, Server},
    status::ApiError,
};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use koord_listen::PeerCertificates;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    server::WebPkiClientVerifier,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsConnector;
use tower::ServiceExt;

use crate::api_server;

const PAGE: &str = r#"<a href="/logs/">logs</a>"#;

/// What a kubelet answers in these tests.
async fn kubelet(mut request: Request) -> Response {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let certified = request.extensions().get::<PeerCertificates>().is_some();
    let text = |code: u16, text: String| Response::builder().status(code).body(Body::from(text)).unwrap();
    match path.as_str() {
        "/containerLogs/default/p/c" => text(200, format!("certified={certified}\n")),
        "/containerLogs/default/p/c?previous=true" => text(400, "previous terminated container not found".to_owned()),
        "/containerLogs/default/p/c?tailLines=1" => text(404, "no log".to_owned()),
        "/page" => text(200, PAGE.to_owned()),
        "/exec/default/p/c?command=cat&input=1" => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut stream = TokioIo::new(upgrade.await.unwrap());
                let mut line = [0; 5];
                stream.read_exact(&mut line).await.unwrap();
                line.reverse();
                stream.write_all(&line).await.unwrap();
                stream.shutdown().await.unwrap();
            });
            let mut response = text(101, String::new());
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("SPDY/3.1"));
            response.headers_mut().insert("x-stream-protocol-version", HeaderValue::from_static("v4.channel.k8s.io"));
            response
        }
        _ => {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let names: Vec<&str> = parts.headers.keys().map(http::HeaderName::as_str).collect();
            let seen = json!({"method": parts.method.as_str(), "path": path, "body": String::from_utf8_lossy(&body),
                "headers": names});
            text(418, seen.to_string())
        }
    }
}

/// Connects to [`kubelet`] in this process, whatever the address is, except for one where nobody listens.
struct InProcess;

impl Dial for InProcess {
    fn dial(&self, address: SocketAddr, _: Scheme) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            if address.port() == 1 {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = tokio::io::duplex(1024);
            let service = TowerToHyperService::new(Router::new().fallback(kubelet));
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(far), service).with_upgrades());
            Ok(Box::new(near) as Box<dyn Connection>)
        })
    }
}

/// A node whose kubelet is at this address, with pod `p` on it, whose container is `c`.
async fn populate(server: &Server, ip: &str, port: u16) {
    let (code, _) = server.send(Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await;
    assert_eq!(code, 201);
    let status = json!({"addresses": [{"type": "InternalIP", "address": ip}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}});
    assert_eq!(server.send(Method::PATCH, "/api/v1/nodes/n/status", &json!({"status": status})).await.0, 200);
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let (code, answer) = server.send(Method::POST, "/api/v1/namespaces/default/pods", &pod).await;
    assert_eq!(code, 201, "{answer}");
}

async fn in_process(port: u16) -> Server {
    let mut core = api_server::empty();
    envtest::bootstrap::run(&mut core).unwrap();
    let server = Server::new(core, Parts { kubelets: Some(Box::new(InProcess)), ..Parts::default() });
    populate(&server, "10.0.0.7", port).await;
    server
}

async fn ask(server: &Server, request: http::request::Builder, body: &str) -> (StatusCode, String, Response<()>) {
    let answer = server.router().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let (parts, body) = answer.into_parts();
    let text = String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned();
    (parts.status, text, Response::from_parts(parts, ()))
}

const POD: &str = "/api/v1/namespaces/default/pods/p";

#[tokio::test]
async fn a_log_is_the_kubelets_and_so_is_its_failure() {
    let server = in_process(10250).await;
    let log = |query: &str| Request::get(format!("{POD}/log{query}"));
    let (code, text, answer) = ask(&server, log(""), "").await;
    assert_eq!((code.as_u16(), text.as_str()), (200, "certified=false\n"));
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain");
    let message = |text: &str| serde_json::from_str::<Value>(text).unwrap()["message"].as_str().unwrap().to_owned();
    let (code, text, _) = ask(&server, log("?previous=true"), "").await;
    assert_eq!((code.as_u16(), message(&text).as_str()), (400, "previous terminated container not found"));
    let (code, text, _) = ask(&server, log("?tailLines=1"), "").await;
    let expected = "the server could not find the requested resource ( pods/log p)";
    assert_eq!((code.as_u16(), message(&text).as_str()), (404, expected));
}

#[tokio::test]
async fn what_a_kubelet_serves_is_passed_on_without_who_asks() {
    let server = in_process(10250).await;
    let request = Request::post("/api/v1/nodes/n/proxy/run/x?a=b%20c")
        .header(header::AUTHORIZATION, "Bearer secret")
        .header("impersonate-user", "jane")
        .header(header::CONNECTION, "keep-alive")
        .header("x-own", "1");
    let (code, text, _) = ask(&server, request, "hello").await;
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code.as_u16(), 418);
    assert_eq!([&seen["method"], &seen["path"], &seen["body"]], ["POST", "/run/x?a=b%20c", "hello"]);
    let names: Vec<&str> = seen["headers"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"x-own") && names.contains(&"host"), "{names:?}");
    for name in ["authorization", "impersonate-user", "connection"] {
        assert!(!names.contains(&name), "{names:?}");
    }
    let (code, _, answer) = ask(&server, Request::get("/api/v1/nodes/n/proxy?x=1"), "").await;
    assert_eq!(
        (code.as_u16(), &answer.headers()[header::LOCATION]),
        (301, &HeaderValue::from_static("/api/v1/nodes/n/proxy/?x=1"))
    );
}

#[tokio::test]
async fn a_kubelet_that_cannot_be_reached_is_named() {
    let server = in_process(1).await;
    let upgrade =
        |request: http::request::Builder| request.header("connection", "Upgrade").header("upgrade", "SPDY/3.1");
    let table = [
        (
            Request::get(format!("{POD}/log")),
            500,
            r#"Get "https://10.0.0.7:1/containerLogs/default/p/c": dial tcp 10.0.0.7:1: connect: connection refused"#,
        ),
        (
            upgrade(Request::post(format!("{POD}/exec?command=ls"))),
            500,
            "error dialing backend: dial tcp 10.0.0.7:1: connect: connection refused",
        ),
        (Request::post(format!("{POD}/exec?command=ls")), 400, "Upgrade request required"),
        (
            Request::get("/api/v1/nodes/n/proxy/pods"),
            503,
            "error trying to reach service: dial tcp 10.0.0.7:1: connect: connection refused",
        ),
    ];
    for (request, expected, message) in table {
        let (code, text, _) = ask(&server, request, "").await;
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code.as_u16(), status["message"].as_str()), (expected, Some(message)));
    }
}

/// A kubelet on a port of this machine that only clients of the authority may use.
async fn listening(authority_pem: &str, stop: watch::Receiver<bool>) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let own = rcgen::generate_simple_self_signed(vec!["n".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut stop = stop;
    tokio::spawn(async move {
        let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
        let server = koord_listen::Server::new(koord_listen::Limits::default());
        server.serve(listener, Some(Arc::new(config)), Router::new().fallback(kubelet), stopped).await;
    });
    address
}

async fn connected(url: &str, authority_pem: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(url.trim_start_matches("https://")).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await.unwrap()
}

#[tokio::test]
async fn a_command_talks_with_its_client_through_the_server_which_the_kubelet_knows() {
    let cluster = Cluster::bind(Options::default()).await.unwrap();
    let kubeconfig = cluster.kubeconfig(Owner::named("t"));
    let (stop, stopped) = watch::channel(false);
    let kubelet = listening(&kubeconfig.authority_pem, stopped.clone()).await;
    populate(&cluster.server, "127.0.0.1", kubelet.port()).await;
    let (code, text, _) = ask(&cluster.server, Request::get(format!("{POD}/log")), "").await;
    assert_eq!((code.as_u16(), text.as_str()), (200, "certified=true\n"), "the server has shown its certificate");

    let (url, token) = (cluster.url(), kubeconfig.token.clone());
    let serving = tokio::spawn(cluster.run(stopped));
    let mut stream = connected(&url, &kubeconfig.authority_pem).await;
    let request = format!(
        "POST {POD}/exec?command=cat&stdin=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(
        head.starts_with("http/1.1 101") && head.contains("x-stream-protocol-version: v4.channel.k8s.io"),
        "{head}"
    );
    stream.write_all(b"hello").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"olleh");
    stop.send_replace(true);
    serving.await.unwrap();
}

#[tokio::test]
async fn links_of_pages_stay_as_they_are() {
    let server = in_process(10250).await;
    let (code, text, _) = ask(&server, Request::get("/api/v1/nodes/n/proxy/page"), "").await;
    assert_eq!((code.as_u16(), text.as_str()), (200, PAGE));
}

#[tokio::test]
async fn a_websocket_is_passed_on_whatever_its_protocol_is() {
    let server = in_process(10250).await;
    let request = Request::get(format!("{POD}/exec?command=ls"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-protocol", "v5.channel.k8s.io");
    let (code, text, _) = ask(&server, request, "").await;
    assert_eq!(code.as_u16(), 418, "{text}");
    for name in ["connection", "upgrade", "sec-websocket-protocol"] {
        assert!(text.contains(&format!("{name:?}")), "{text}");
    }
}

/// Webhooks that refuse everything.
struct Refusing;

impl Admission for Refusing {
    fn review<'a>(&'a self, _: &'a Server, _: &'a Review) -> BoxFuture<'a, Result<Admitted, ApiError>> {
        Box::pin(async { Err(ApiError::bad_request("refused")) })
    }
}

#[tokio::test]
async fn webhooks_are_not_asked_about_connections() {
    let mut core = api_server::empty();
    envtest::bootstrap::run(&mut core).unwrap();
    let server = Server::new(
        core,
        Parts { kubelets: Some(Box::new(InProcess)), admission: Some(Box::new(Refusing)), ..Parts::default() },
    );
    populate(&server, "10.0.0.7", 10250).await;
    let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]});
    let webhook = json!({"name": "a.b.c", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://localhost/"}});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let (code, answer) =
        server.send(Method::POST, path, &json!({"metadata": {"name": "w"}, "webhooks": [webhook]})).await;
    assert_eq!(code, 201, "{answer}");
    let map = json!({"metadata": {"name": "m"}});
    assert_eq!(server.send(Method::POST, "/api/v1/namespaces/default/configmaps", &map).await.0, 400, "it refuses");
    let (code, ..) = ask(&server, Request::get("/api/v1/nodes/n/proxy/page"), "").await;
    assert_eq!(code.as_u16(), 200);
}
