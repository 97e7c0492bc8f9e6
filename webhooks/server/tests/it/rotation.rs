//! Ten changes of the certificate authority under load, without one review that fails.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use koord_resource::admission::{FailurePolicy, Handler, Operation, Request, Verdict, WebhookEntry, WebhookKind};
use koord_runtime::clock::{Clock, ManualClock, SystemClock};
use koord_webhook::{Environment, Keeper, Metrics, Served, ServiceBuilder, listen, serve, tls};
use rustls::{ClientConfig, RootCertStore, time_provider::TimeProvider};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::api_server::{ApiServer, VALIDATING};

pub(crate) static HANDLER: Handler<()> = Handler {
    path: "/validate-pod",
    gate: None,
    entries: &[WebhookEntry {
        kind: WebhookKind::Validating,
        name: "v.example.com",
        groups: &[""],
        versions: &["v1"],
        resources: &["pods"],
        operations: &[Operation::Create],
        failure_policy: FailurePolicy::Fail,
        match_policy: None,
        reinvocation_policy: None,
        namespace_selector: None,
        object_selector: None,
        match_conditions: &[],
        timeout_seconds: None,
        review_versions: &["v1"],
    }],
    rbac: &[],
    object_type: "pod",
    call: |_: &Request<'_>, (): &()| Verdict::allow(),
};

/// Certificates are judged by the keeper's time, which runs in years.
#[derive(Debug)]
struct Time(Arc<ManualClock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(self.0.now().as_second()).ok()?)))
    }
}

/// A connection of an API server to a webhook.
pub(crate) type Connection = http1::SendRequest<Full<Bytes>>;

/// Trusts a bundle, and connects.
pub(crate) async fn connect(address: SocketAddr, bundle: &str, clock: &Arc<ManualClock>) -> Result<Connection, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle.as_bytes()).filter_map(Result::ok));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(Time(Arc::clone(clock))))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = tokio::net::TcpStream::connect(address).await.map_err(|error| said(&error))?;
    let name = ServerName::try_from("koordinator-webhook-service.koordinator-system.svc").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.map_err(|error| said(&error))?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| said(&error))?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Sends a review, which must be allowed.
pub(crate) async fn ask(connection: &mut Connection) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let body = Full::new(Bytes::from_static(br#"{"request":{"uid":"u","operation":"CREATE"}}"#));
    let request = http::Request::post("/validate-pod").header("content-type", "application/json");
    let request = request.header("host", "webhook").body(body).unwrap();
    let answer = connection.send_request(request).await.map_err(|error| said(&error))?;
    let body = answer.into_body().collect().await.map_err(|error| said(&error))?.to_bytes();
    if !String::from_utf8_lossy(&body).contains(r#""allowed":true"#) {
        return Err(format!("answered {body:?}"));
    }
    Ok(())
}

/// What an API server does: trusts the bundle that the configuration shows now, connects, and sends reviews.
pub(crate) async fn review(address: SocketAddr, bundle: &str, clock: &Arc<ManualClock>) -> Result<(), String> {
    let mut connection = connect(address, bundle, clock).await?;
    // The second review of a connection is answered whatever was presented when it began.
    ask(&mut connection).await?;
    ask(&mut connection).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_new_authorities_under_load_fail_no_review() {
    let (server, folder) = (ApiServer::with_configurations(), tempfile::tempdir().unwrap());
    let home = folder.path().to_string_lossy().into_owned();
    let environment = Environment::from(|name| (name == "WEBHOOK_CERT_DIR").then(|| home.clone())).unwrap();
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let keeper = Keeper::new(
        environment,
        Served { paths: vec!["/validate-pod"], definitions: Vec::new() },
        0,
        Arc::clone(&clock) as _,
    );
    let api = server.api();
    keeper.pass(&api).await.unwrap();

    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    let service = ServiceBuilder::new(metrics, SystemClock::shared()).handler(&HANDLER, || &()).build();
    let listener = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let tls = tls(Arc::clone(keeper.certificate())).unwrap();
    let serving = tokio::spawn(serve(listener, tls, service, SystemClock::shared(), stop.clone()));

    let (reviews, done) = (Arc::new(AtomicUsize::new(0)), CancellationToken::new());
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (server, clock, reviews, done) =
                (server.clone(), Arc::clone(&clock), Arc::clone(&reviews), done.clone());
            tokio::spawn(async move {
                while !done.is_cancelled() {
                    let bundle = server.get(VALIDATING).unwrap()["webhooks"][0]["clientConfig"]["caBundle"].clone();
                    let bundle = String::from_utf8(BASE64.decode(bundle.as_str().unwrap()).unwrap()).unwrap();
                    review(address, &bundle, &clock).await?;
                    reviews.fetch_add(2, Ordering::Relaxed);
                }
                Ok::<(), String>(())
            })
        })
        .collect();

    let mut presented = vec![keeper.certificate().presented().unwrap()];
    // Waits until every client has had an answer under the state that a pass left.
    let settle = async |reviews: &AtomicUsize| {
        let seen = reviews.load(Ordering::Relaxed);
        while reviews.load(Ordering::Relaxed) < seen + 16 && load.iter().all(|client| !client.is_finished()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    for _ in 0..10 {
        // The authority has less than a year left, the certificate less than half a year.
        for step in [Duration::from_hours(24 * 3560), Duration::from_secs(61), Duration::from_secs(601)] {
            clock.jump_to(clock.now() + step);
            keeper.pass(&api).await.unwrap();
            assert_eq!(keeper.ready(), Ok(()));
            settle(&reviews).await;
        }
        presented.push(keeper.certificate().presented().unwrap());
    }
    done.cancel();
    for client in load {
        client.await.unwrap().unwrap();
    }
    presented.dedup();
    assert_eq!(presented.len(), 11, "ten times another certificate was presented");
    assert!(reviews.load(Ordering::Relaxed) >= 480);
    stop.cancel();
    serving.await.unwrap();
}
