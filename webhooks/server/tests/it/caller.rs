//! What API servers do: they trust the bundle that a webhook configuration shows, connect, and send reviews.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use koord_runtime::clock::{Clock, ManualClock};
use rustls::{ClientConfig, RootCertStore, client::Resumption, time_provider::TimeProvider};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use tokio_rustls::TlsConnector;

use crate::{
    api_server::{ApiServer, VALIDATING},
    replica::HOST,
};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"CREATE"}}"#;

/// Certificates are judged by the controller's time, which runs in years.
#[derive(Debug)]
struct Time(Arc<ManualClock>);

impl TimeProvider for Time {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(self.0.now().as_second()).ok()?)))
    }
}

/// A connection of an API server to a webhook.
pub(crate) type Connection = http1::SendRequest<Full<Bytes>>;

/// What the callers of a webhook share: the configuration, and the trust that they made of its bundle last.
#[derive(Clone)]
pub(crate) struct Caller {
    server: ApiServer,
    clock: Arc<ManualClock>,
    address: SocketAddr,
    trust: Arc<Mutex<Option<(String, TlsConnector)>>>,
}

impl Caller {
    pub(crate) fn new(server: &ApiServer, clock: &Arc<ManualClock>, address: SocketAddr) -> Self {
        Self { server: server.clone(), clock: Arc::clone(clock), address, trust: Arc::default() }
    }

    /// The bundle as the configuration shows it now, in base64.
    pub(crate) fn bundle(&self) -> String {
        shown(&self.server)
    }

    /// Trusts a bundle that was shown, and connects.
    pub(crate) async fn connect(&self, bundle: &str) -> Result<Connection, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let trust = self.trust(bundle);
        let socket = tokio::net::TcpStream::connect(self.address).await.map_err(|error| text(&error))?;
        let name = ServerName::try_from(HOST).unwrap();
        let stream = trust.connect(name, socket).await.map_err(|error| text(&error))?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn trust(&self, bundle: &str) -> TlsConnector {
        let mut last = self.trust.lock().unwrap();
        if let Some((_, trust)) = last.as_ref().filter(|(known, _)| known == bundle) {
            return trust.clone();
        }
        let mut roots = RootCertStore::empty();
        let certificates = decoded(bundle);
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(certificates.as_bytes()).filter_map(Result::ok));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_details(provider, Arc::new(Time(Arc::clone(&self.clock))))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A session that goes on would not look at the certificate.
        config.resumption = Resumption::disabled();
        let trust = TlsConnector::from(Arc::new(config));
        *last = Some((bundle.to_owned(), trust.clone()));
        trust
    }

    /// Connects with the trust of this moment and sends two reviews.
    pub(crate) async fn review(&self) -> Result<(), String> {
        let mut connection = self.connect(&self.bundle()).await?;
        // The second review of a connection is answered whatever was presented when it began.
        ask(&mut connection).await?;
        ask(&mut connection).await
    }
}

fn shown(server: &ApiServer) -> String {
    let bundle = |configuration: &serde_json::Value| {
        configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().map(str::to_owned)
    };
    server.look(VALIDATING, bundle).flatten().unwrap()
}

fn decoded(bundle: &str) -> String {
    String::from_utf8(BASE64.decode(bundle).unwrap()).unwrap()
}

/// The certificates that the configuration shows now.
pub(crate) fn bundle(server: &ApiServer) -> String {
    decoded(&shown(server))
}

/// Sends a review, which must be allowed.
pub(crate) async fn ask(connection: &mut Connection) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let request = http::Request::post("/validate-pod").header("content-type", "application/json");
    let request = request.header("host", "webhook").body(Full::new(Bytes::from_static(REVIEW))).unwrap();
    let answer = connection.send_request(request).await.map_err(|error| text(&error))?;
    let body = answer.into_body().collect().await.map_err(|error| text(&error))?.to_bytes();
    if !String::from_utf8_lossy(&body).contains(r#""allowed":true"#) {
        return Err(format!("answered {body:?}"));
    }
    Ok(())
}
