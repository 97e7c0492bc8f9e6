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
use serde_json::Value;

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
    /// `https://host:port/path?query`, as it is shown to users.
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
        let failed = |error: String| format!("Post \"{}\": {error}", address.url);
        let Endpoint { uri, host, name } =
            endpoint(address).ok_or_else(|| failed("unsupported protocol scheme".to_owned()))?;
        let pool = self.pool(ca_bundle, &name).map_err(failed)?;
        let uri_authority = uri.split('/').nth(2).unwrap_or_default().to_owned();
        let request = Request::post(uri)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| failed(error.to_string()))?;
        let response = pool.request(request).await.map_err(|error| failed(explain(&error, &uri_authority)))?;
        let status = response.status();
        let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
        if matches!(status.as_u16(), 200..=206) {
            if body.is_empty() {
                let status = status.as_u16();
                return Err(format!("0-length response with status code: {status} and content type: {content_type}"));
            }
            return Ok(body);
        }
        Err(explain_status(status.as_u16(), &content_type, &body))
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
            // Its time and purposes were judged before anybody looked for an issuer.
            Err(TlsError::InvalidCertificate(CertificateError::Other(_) | CertificateError::UnknownIssuer))
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

/// The error of an answer that is no success: its own `Status`, or what client-go says of its code.
fn explain_status(code: u16, content_type: &str, body: &[u8]) -> String {
    let answered: Value = serde_json::from_slice(body).unwrap_or_default();
    if answered["kind"] == "Status" && answered["apiVersion"] == "v1" && answered["status"] != "Success" {
        return answered["message"].as_str().unwrap_or_default().to_owned();
    }
    let text = if content_type.starts_with("text/") { String::from_utf8_lossy(body) } else { "unknown".into() };
    let text = text.trim();
    let words = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 => text,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if text != "unknown" => text,
        406 | 415 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => return format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        _ => return format!("the server responded with the status code {code} but did not return more information"),
    };
    words.to_owned()
}

/// What went wrong with a connection to this host and port, in the words of Go's client.
fn explain(error: &HyperError, address: &str) -> String {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut last = error.to_string();
    while let Some(cause) = source {
        if let Some(text) = cause.downcast_ref::<TlsError>().map(explain_tls) {
            return text;
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            if io.kind() == std::io::ErrorKind::ConnectionRefused {
                return format!("dial tcp {address}: connect: connection refused");
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

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
    };

    use super::*;

    #[test]
    fn answers_that_are_no_success_are_explained_by_their_code_or_their_status() {
        let json = "application/json";
        for (code, content_type, body, words) in [
            (299, json, "{}", "the server responded with the status code 299 but did not return more information"),
            (403, json, "no", "unknown"),
            (403, "text/plain", " no\n", "no"),
            (409, json, "", "the server reported a conflict"),
            (500, json, "{}", "an error on the server (\"unknown\") has prevented the request from succeeding"),
            (500, "text/plain", "oops", "an error on the server (\"oops\") has prevented the request from succeeding"),
            (503, json, r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy"}"#, "busy"),
        ] {
            assert_eq!(explain_status(code, content_type, body.as_bytes()), words, "{code} {body}");
        }
    }

    #[test]
    fn a_certificate_that_stands_in_the_bundle_is_trusted_without_its_issuer_while_it_is_valid() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "authority");
        let authority = Issuer::new(authority, KeyPair::generate().unwrap());
        let issue = |year: i32| {
            let mut leaf = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            leaf.not_before = date_time_ymd(year, 1, 1);
            leaf.not_after = date_time_ymd(year + 2, 1, 1);
            leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            leaf.signed_by(&KeyPair::generate().unwrap(), &authority).unwrap()
        };
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_hours(500_000)); // 2027-01-15
        let (valid, another, expired) = (issue(2026), issue(2026), issue(2023));
        let is_trusted = |bundle: &rcgen::Certificate, shown: &rcgen::Certificate, name: &str| {
            let trust = Trust::new(bundle.pem().as_bytes(), &provider).unwrap();
            let name = ServerName::try_from(name).unwrap();
            trust.verify_server_cert(shown.der(), &[], &name, &[], now).is_ok()
        };
        assert!(is_trusted(&valid, &valid, "127.0.0.1"));
        assert!(!is_trusted(&valid, &valid, "127.0.0.2"));
        assert!(!is_trusted(&valid, &another, "127.0.0.1"));
        assert!(!is_trusted(&expired, &expired, "127.0.0.1"));
    }
}
