//! Connections to kubelets, which know the server by a certificate of its authority.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{Authority, CertificateError};
use crate::{
    server::Scheme,
    shell::{BoxFuture, Connection, Dial},
};

/// Who the server is to kubelets.
const NAME: &str = "kube-apiserver-kubelet-client";
const GROUP: &str = "system:masters";

/// Connects to kubelets. Its certificate is made when the first of them is asked.
pub struct Kubelets {
    authority: Arc<Authority>,
    with_certificate: OnceLock<Arc<ClientConfig>>,
}

// === impl Kubelets ===

impl Kubelets {
    /// Kubelets that trust clients of this authority (`clientCAFile` of their configuration).
    pub fn new(authority: Arc<Authority>) -> Self {
        Self { authority, with_certificate: OnceLock::new() }
    }

    fn config(&self, scheme: Scheme) -> Result<Arc<ClientConfig>, CertificateError> {
        if scheme != Scheme::Kubelet {
            return Ok(Arc::new(unverified()?.with_no_client_auth()));
        }
        if let Some(config) = self.with_certificate.get() {
            return Ok(Arc::clone(config));
        }
        let (certificate, key) = self.authority.client(NAME, GROUP)?;
        let config = Arc::new(unverified()?.with_client_auth_cert(vec![certificate], key)?);
        Ok(Arc::clone(self.with_certificate.get_or_init(|| config)))
    }
}

impl Dial for Kubelets {
    fn dial(&self, address: SocketAddr, scheme: Scheme) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            let _ = stream.set_nodelay(true);
            if scheme == Scheme::Http {
                return Ok(Box::new(stream) as Box<dyn Connection>);
            }
            let config = self.config(scheme).map_err(io::Error::other)?;
            let name = ServerName::IpAddress(address.ip().into());
            let stream = TlsConnector::from(config).connect(name, stream).await.map_err(worded)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// A kubelet's refusal to speak TLS, in the words of Go. One that waits for its certificate refuses with an internal error.
fn worded(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::AlertReceived(alert)) = inner else { return error };
    let mut text = "remote error: tls:".to_owned();
    for letter in format!("{alert:?}").chars() {
        if letter.is_uppercase() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    io::Error::other(text)
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

/// As kube-apiserver without `--kubelet-certificate-authority`: a kubelet signs its certificate itself unless it is told
/// otherwise.
fn unverified() -> Result<Builder, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer(provider))))
}

/// Takes any certificate of a server that has its key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_tls_has_the_words_of_go() {
        let alert = rustls::Error::AlertReceived(rustls::AlertDescription::InternalError);
        let error = worded(io::Error::new(io::ErrorKind::InvalidData, alert));
        assert_eq!(error.to_string(), "remote error: tls: internal error");
        assert_eq!(worded(io::ErrorKind::ConnectionRefused.into()).kind(), io::ErrorKind::ConnectionRefused);
    }
}
