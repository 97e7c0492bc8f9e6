//! Time of `/mutate-pod`: the decision alone, and over TLS connections that stay open.
//!
//! `cargo bench -p koord-webhook-handlers` prints one line per setting. The floor is the time to read the review's JSON into
//! a `serde_json::Value` and write it again, in the same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use koord_listen::{Limits, Server, bind};
use koord_runtime::clock::SystemClock;
use koord_webhook_handlers::Ctx;
use koord_webhook_server::{
    Metrics, Service, ServiceBuilder,
    certificates::{HotCertificate, decide},
    tls,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::Value;

const REVIEW: &[u8] = include_bytes!("../tests/data/pod_review_3kb.json");
const PRIORITY_CLASS: &str =
    r#"{"kind":"PriorityClass","metadata":{"name":"koord-batch","uid":"u","resourceVersion":"1"},"value":5000}"#;

fn profile(spec: &str) -> String {
    format!(
        r#"{{"kind":"ClusterColocationProfile","metadata":{{"name":"p","uid":"u","resourceVersion":"1"}},"spec":{{
        "selector":{{"matchLabels":{{"koordinator.sh/enable-colocation":"true"}}}},"qosClass":"BE",
        "priorityClassName":"koord-batch","koordinatorPriority":1000,"schedulerName":"koord-scheduler"{spec}}}}}"#
    )
}

fn service(profile: Option<&str>) -> Service {
    let ctx = Ctx::detached(|_| false);
    ctx.put("PriorityClass", PRIORITY_CLASS).unwrap();
    if let Some(profile) = profile {
        ctx.put("ClusterColocationProfile", profile).unwrap();
    }
    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    let builder = ServiceBuilder::new(metrics, SystemClock::shared());
    koord_webhook_handlers::serve(builder, &Arc::new(ctx), |_| true).build()
}

fn micros_per_call(mut call: impl FnMut()) -> f64 {
    let warm_until = Instant::now() + Duration::from_millis(200);
    while Instant::now() < warm_until {
        call();
    }
    // The best of several rounds is what the code costs; the rest is what else runs on the machine.
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..2_000).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / 2_000.0
    };
    (0..15).map(|_| round(&mut call)).fold(f64::MAX, f64::min)
}

fn decisions() {
    let floor = micros_per_call(|| {
        let value: Value = serde_json::from_slice(black_box(REVIEW)).unwrap();
        black_box(value.to_string());
    });
    println!("review of {} bytes; floor (JSON to a Value and back): {floor:.1} µs", REVIEW.len());
    let with_patch = profile(r#","patch":{"spec":{"terminationGracePeriodSeconds":5}}"#);
    for (name, profile) in [
        ("no profile", None),
        ("profile", Some(profile(""))),
        ("profile with a strategic merge patch", Some(with_patch)),
    ] {
        let service = service(profile.as_deref());
        let micros = micros_per_call(|| drop(black_box(service.decide("/mutate-pod", black_box(REVIEW)))));
        println!("decision, {name}: {micros:.1} µs ({:.2} of the floor)", micros / floor);
    }
}

async fn over_tls(connections: usize, reviews: usize) {
    let now = jiff::Timestamp::now();
    let host = "localhost";
    let set = decide(None, host, false, now).unwrap().set;
    let certificate = Arc::new(HotCertificate::default());
    certificate.swap(&set).unwrap();
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let server = service(Some(&profile("")));
    let (tls, router) = (tls(certificate).unwrap(), server.router());
    let serving = tokio::spawn(async move {
        Server::new(Limits::default()).serve(listener, Some(tls), router, std::future::pending()).await;
    });

    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(set.ca_certs.as_bytes()).map(Result::unwrap));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
    let start = Instant::now();
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let connector = tokio_rustls::TlsConnector::from(Arc::clone(&client));
            tokio::spawn(async move {
                let socket = tokio::net::TcpStream::connect(address).await.unwrap();
                socket.set_nodelay(true).unwrap();
                let stream = connector.connect(ServerName::try_from(host).unwrap(), socket).await.unwrap();
                let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                let mut spent = Vec::with_capacity(reviews / connections);
                for _ in 0..reviews / connections {
                    let request = http::Request::post("/mutate-pod?timeout=10s")
                        .header("host", host)
                        .header("content-type", "application/json")
                        .body(Full::new(Bytes::from_static(REVIEW)))
                        .unwrap();
                    let start = Instant::now();
                    let answer = sender.send_request(request).await.unwrap();
                    answer.into_body().collect().await.unwrap();
                    spent.push(start.elapsed());
                }
                spent
            })
        })
        .collect();
    let mut spent = Vec::new();
    for client in clients {
        spent.extend(client.await.unwrap());
    }
    let seconds = start.elapsed().as_secs_f64();
    spent.sort_unstable();
    let at = |share: usize| spent[(spent.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "TLS, {connections} connections: {:.0} reviews/s, p50 {:.2} ms, p99 {:.2} ms (client and server share the machine)",
        spent.len() as f64 / seconds,
        at(50),
        at(99)
    );
    serving.abort();
}

fn main() {
    decisions();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for connections in [1, 16, 128] {
        runtime.block_on(over_tls(connections, 20_000));
    }
}
