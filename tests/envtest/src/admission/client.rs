//! Calls over TLS, with connections that are kept.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as HyperClient, Error as HyperError};
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

type Pool = HyperClient<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// One pool of connections per authority and server name.
#[derive(Default)]
pub(super) struct Clients {
    pools: Mutex<HashMap<(Vec<u8>, String), Pool>>,
}

/// Where a call goes.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// `https://host:port/path?query`, as it is told to users.
    pub(super) url: String,
    /// The name that the certificate must be for, where it is not the host of the URL.
    pub(super) server_name: Option<String>,
    /// Where to connect, where it is not the host of the URL.
    pub(super) socket: Option<SocketAddr>,
}

/// The names that a call's connection uses.
struct Endpoint {
    uri: String,
    host: String,
    name: String,
}

// === impl Clients ===

impl Clients {
    /// Posts JSON and gives the body of a successful answer; errors are worded as Go's client words them.
    pub(super) async fn post(&self, address: &Address, ca_bundle: &[u8], body: Vec<u8>) -> Result<Bytes, String> {
        let told = |error: String| format!("Post \"{}\": {error}", address.url);
        let Endpoint { uri, host, name } =
            endpoint(address).ok_or_else(|| told("unsupported protocol scheme".to_owned()))?;
        let pool = self.pool(ca_bundle, &name).map_err(told)?;
        let request = Request::post(uri)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| told(error.to_string()))?;
        let response = pool.request(request).await.map_err(|error| told(explain(&error)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| told(error.to_string()))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body);
        let text = text.trim();
        Err(match status.as_u16() {
            404 => "the server could not find the requested resource".to_owned(),
            401 => "the server has asked for the client to provide credentials".to_owned(),
            403 => "forbidden".to_owned(),
            429 => "the server has received too many requests and has asked us to try again later".to_owned(),
            400..=499 => "the server rejected our request for an unknown reason".to_owned(),
            _ => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        })
    }

    fn pool(&self, ca_bundle: &[u8], name: &str) -> Result<Pool, String> {
        let key = (ca_bundle.to_vec(), name.to_owned());
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(&key) {
            return Ok(pool.clone());
        }
        let server_name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(ca_bundle)?)
            .https_only()
            .with_server_name_resolver(FixedServerNameResolver::new(server_name))
            .enable_http1()
            .wrap_connector(http);
        let pool: Pool = HyperClient::builder(TokioExecutor::new()).build(connector);
        pools.insert(key, pool.clone());
        Ok(pool)
    }
}

fn endpoint(address: &Address) -> Option<Endpoint> {
    let uri: http::Uri = address.url.parse().ok()?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("https"))?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let name = address.server_name.clone().unwrap_or_else(|| authority.host().trim_matches(['[', ']']).to_owned());
    let connect = address.socket.map_or_else(|| authority.to_string(), |socket| socket.to_string());
    Some(Endpoint { uri: format!("https://{connect}{path}"), host: authority.to_string(), name })
}

fn tls(ca_bundle: &[u8]) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Trust::new(ca_bundle, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

/// Trusts what the bundle signed, and, as Go does, a certificate that stands in the bundle itself.
#[derive(Debug)]
struct Trust {
    anchors: Vec<CertificateDer<'static>>,
    /// None when the bundle holds no authority.
    signed: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

// === impl Trust ===

impl Trust {
    fn new(ca_bundle: &[u8], provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let anchors: Vec<_> = CertificateDer::pem_slice_iter(ca_bundle).filter_map(Result::ok).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(anchors.iter().cloned());
        let signed = if roots.is_empty() {
            None
        } else {
            let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
            Some(builder.build().map_err(|error| error.to_string())?)
        };
        Ok(Self { anchors, signed, provider: Arc::clone(provider) })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(signed) = &self.signed else {
            return Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        let verdict = signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            Err(TlsError::InvalidCertificate(CertificateError::Other(_)))
                if self.anchors.iter().any(|anchor| anchor.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What went wrong with a connection, in the words of Go's client.
fn explain(error: &HyperError) -> String {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(text) = cause.downcast_ref::<TlsError>().map(explain_tls) {
            return text;
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            if io.kind() == std::io::ErrorKind::ConnectionRefused {
                return "connect: connection refused".to_owned();
            }
            if let Some(text) = tls_error(io).map(explain_tls) {
                return text;
            }
        }
        last = cause.to_string();
        source = cause.source();
    }
    last
}

/// The failure of a handshake, which comes wrapped once or more.
fn tls_error(error: &std::io::Error) -> Option<&TlsError> {
    let inner = error.get_ref()?;
    inner.downcast_ref::<TlsError>().or_else(|| tls_error(inner.downcast_ref::<std::io::Error>()?))
}

fn explain_tls(error: &TlsError) -> String {
    let why = match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "certificate signed by unknown authority".to_owned()
        }
        TlsError::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => "certificate has expired or is not yet valid".to_owned(),
        TlsError::InvalidCertificate(other) => other.to_string(),
        other => return format!("remote error: tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}
