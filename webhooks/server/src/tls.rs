//! TLS as Kubernetes wants it.

use std::sync::Arc;

use rustls::{
    ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, ring},
    server::{ResolvesServerCert, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::TLS13,
};

use crate::certificates::HotCertificate;

/// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, and the certificate that is presented at the time of the handshake.
pub fn tls(certificate: Arc<HotCertificate>) -> Result<Arc<ServerConfig>, rustls::Error> {
    TlsPolicy::default().serving(certificate)
}

/// Which versions and cipher suites of TLS are spoken, and which of HTTP over them. By default 1.2 and 1.3, with the suites of rustls, and
/// HTTP/2 and HTTP/1.1.
#[derive(Clone, Debug)]
pub struct TlsPolicy {
    versions: &'static [&'static SupportedProtocolVersion],
    suites: Vec<SupportedCipherSuite>,
    has_http2: bool,
}

static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];

impl Default for TlsPolicy {
    fn default() -> Self {
        Self { versions: rustls::DEFAULT_VERSIONS, suites: ring::default_provider().cipher_suites, has_http2: true }
    }
}

impl TlsPolicy {
    /// No version before this one, by its name in programs of Kubernetes. Versions before 1.2 are never spoken.
    ///
    /// ```
    /// use koord_webhook_server::TlsPolicy;
    /// assert!(TlsPolicy::default().since("VersionTLS13").is_ok());
    /// let error = TlsPolicy::default().since("1.3").unwrap_err();
    /// assert_eq!(error, r#""1.3" is none of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13"#);
    /// ```
    pub fn since(self, version: &str) -> Result<Self, String> {
        let versions = match version {
            "VersionTLS13" => &NEWEST,
            "VersionTLS10" | "VersionTLS11" | "VersionTLS12" => self.versions,
            _ => return Err(format!("{version:?} is none of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13")),
        };
        Ok(Self { versions, ..self })
    }

    /// Of TLS 1.2 these suites alone, by their IANA names; as in Go, those of TLS 1.3 are not chosen. The second value has the names
    /// of those that rustls does not have, because they are not safe.
    ///
    /// ```
    /// use koord_webhook_server::TlsPolicy;
    /// let names = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"].map(str::to_owned);
    /// let (_, left_out) = TlsPolicy::default().among(&names).unwrap();
    /// assert_eq!(left_out, ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
    /// assert!(TlsPolicy::default().among(&names[1..]).unwrap_err().contains("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"));
    /// ```
    pub fn among(self, names: &[String]) -> Result<(Self, Vec<String>), String> {
        const OF_1_3: [&str; 3] = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
        let known = |suite: &SupportedCipherSuite| suite.suite().as_str().unwrap_or_default();
        let is = |suite: &SupportedCipherSuite, name: &str| {
            // Go knows the suites of ChaCha20 without the hash in their names too.
            known(suite) == name || known(suite).strip_suffix("_SHA256") == Some(name)
        };
        let mut suites = self.suites.clone();
        suites.retain(|suite| suite.tls13().is_some() || names.iter().any(|name| is(suite, name)));
        let is_missing =
            |name: &&String| !self.suites.iter().any(|suite| is(suite, name)) && !OF_1_3.contains(&name.as_str());
        let left_out: Vec<String> = names.iter().filter(is_missing).cloned().collect();
        if !left_out.is_empty() && left_out.len() == names.len() {
            let older = self.suites.iter().filter(|suite| suite.tls13().is_none()).map(known);
            let older = older.collect::<Vec<_>>().join(", ");
            return Err(format!("none of {} is served; name some of {older}", left_out.join(", ")));
        }
        Ok((Self { suites, ..self }, left_out))
    }

    /// Without HTTP/2: clients are not offered it, and who asks for nothing else gets no connection.
    #[must_use]
    pub fn without_http2(self) -> Self {
        Self { has_http2: false, ..self }
    }

    /// HTTP over these, with the certificate that is presented at the time of the handshake.
    pub fn serving(self, certificate: Arc<HotCertificate>) -> Result<Arc<ServerConfig>, rustls::Error> {
        self.serving_clients(certificate, WebPkiClientVerifier::no_client_auth())
    }

    /// The same with a choice of certificates, and with what is to be said of those that clients show.
    pub fn serving_clients(
        self,
        certificates: Arc<dyn ResolvesServerCert>,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = CryptoProvider { cipher_suites: self.suites, ..ring::default_provider() };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(self.versions)?
            .with_client_cert_verifier(clients)
            .with_cert_resolver(certificates);
        let protocols = [&b"h2"[..], b"http/1.1"];
        config.alpn_protocols = protocols.iter().skip(usize::from(!self.has_http2)).map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use rustls::{CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConnection, version::TLS12};
    use rustls_pki_types::{CertificateDer, pem::PemObject as _};

    use super::*;
    use crate::certificates::decide;

    /// The suite on which a client that speaks this version agrees with the server.
    fn agreed(policy: TlsPolicy, version: &'static SupportedProtocolVersion) -> Result<CipherSuite, rustls::Error> {
        Ok(connected(policy, version, &[])?.negotiated_cipher_suite().unwrap().suite())
    }

    /// A client that speaks this version, and these protocols over it.
    fn connected(
        policy: TlsPolicy,
        version: &'static SupportedProtocolVersion,
        protocols: &[&str],
    ) -> Result<ClientConnection, rustls::Error> {
        let set = decide(None, "localhost", false, jiff::Timestamp::now()).unwrap().set;
        let certificate = Arc::new(HotCertificate::default());
        certificate.swap(&set).unwrap();
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(set.ca_certs.as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut client = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap())?;
        let mut server = ServerConnection::new(policy.serving(certificate)?)?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut &*bytes).unwrap();
            server.process_new_packets()?;
            bytes.clear();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut &*bytes).unwrap();
            client.process_new_packets()?;
        }
        Ok(client)
    }

    #[test]
    fn http2_is_spoken_unless_the_policy_is_without_it() {
        let agreed = |policy: TlsPolicy, protocols: &[&str]| {
            let client = connected(policy, &TLS13, protocols)?;
            Ok::<_, rustls::Error>(client.alpn_protocol().map(|name| String::from_utf8(name.to_vec()).unwrap()))
        };
        let (with, without) = (TlsPolicy::default, || TlsPolicy::default().without_http2());
        assert_eq!(agreed(with(), &["h2", "http/1.1"]).unwrap().as_deref(), Some("h2"));
        assert_eq!(agreed(without(), &["h2", "http/1.1"]).unwrap().as_deref(), Some("http/1.1"));
        assert_eq!(agreed(without(), &[]).unwrap(), None);
        assert!(agreed(without(), &["h2"]).is_err());
    }

    #[test]
    fn only_the_versions_and_suites_of_the_policy_are_spoken() {
        let newest = || TlsPolicy::default().since("VersionTLS13").unwrap();
        assert!(agreed(newest(), &TLS12).is_err());
        assert!(agreed(newest(), &TLS13).is_ok());
        let one = ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305".to_owned()];
        let one = || TlsPolicy::default().since("VersionTLS11").unwrap().among(&one).unwrap().0;
        let suite = CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
        assert_eq!(agreed(one(), &TLS12).unwrap(), suite);
        assert!(agreed(one(), &TLS13).is_ok(), "those of the newest version are not chosen");
        assert!(agreed(TlsPolicy::default(), &TLS12).is_ok_and(|agreed| agreed != suite));
    }
}
