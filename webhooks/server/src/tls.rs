//! TLS as Kubernetes wants it.

use std::sync::Arc;

use rustls::ServerConfig;

use crate::certificates::HotCertificate;

/// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, and the certificate that is presented at the time of the handshake.
pub fn tls(certificate: Arc<HotCertificate>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
