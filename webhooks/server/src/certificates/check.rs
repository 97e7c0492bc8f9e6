//! Whether a certificate can be served, and whether clients accept it.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};

use super::CertificateSet;

/// Why a certificate cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is no key or no certificate, or it is no PEM; with the name of the entry where it belongs.
    #[error("no {0} in PEM form ({1})")]
    Missing(&'static str, &'static str),
    /// Key and certificate do not belong together, or the key's kind is unknown.
    #[error("the key does not fit the certificate: {0}")]
    Key(String),
    /// A client would refuse it.
    #[error("clients would refuse the certificate for {host}: {reason}")]
    Refused {
        /// The name that clients ask for.
        host: String,
        /// Why they would refuse.
        reason: String,
    },
}

const NO_CERTIFICATE: Unusable = Unusable::Missing("server certificate", "tls.crt");

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The server's key with its certificate chain.
pub(super) fn certified_key(set: &CertificateSet) -> Result<CertifiedKey, Unusable> {
    let chain = certificates(&set.cert);
    if chain.is_empty() {
        return Err(NO_CERTIFICATE);
    }
    let key = PrivateKeyDer::from_pem_slice(set.key.as_bytes());
    let key = key.map_err(|_| Unusable::Missing("server key", "tls.key"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| Unusable::Key(error.to_string()))
}

/// Whether the set's certificate can be served, and clients that trust its authorities accept it at `time`.
pub fn usable_at(set: &CertificateSet, host: &str, time: Timestamp) -> Result<(), Unusable> {
    let key = certified_key(set)?;
    verify(&key.cert, &set.ca_certs, host, time)
}

/// Whether clients that trust `authorities` accept a certificate (DER) for `host` at `time`.
pub fn verifies(certificate: &[u8], authorities: &str, host: &str, time: Timestamp) -> bool {
    verify(&[CertificateDer::from(certificate)], authorities, host, time).is_ok()
}

fn verify(chain: &[CertificateDer<'_>], authorities: &str, host: &str, time: Timestamp) -> Result<(), Unusable> {
    let refused = |reason: String| Unusable::Refused { host: host.to_owned(), reason };
    let [server, between @ ..] = chain else { return Err(NO_CERTIFICATE) };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates(authorities));
    if added == 0 {
        return Err(Unusable::Missing("certificate authority", CertificateSet::CA_CERT));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| refused(error.to_string()))?;
    let name = ServerName::try_from(host).map_err(|error| refused(error.to_string()))?;
    let time = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default()));
    verifier.verify_server_cert(server, between, &name, &[], time).map_err(|error| refused(error.to_string()))?;
    Ok(())
}

/// When the first certificate of a PEM text ends.
pub fn ends_at(pem: &str) -> Option<Timestamp> {
    let first = certificates(pem).into_iter().next()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&first).ok()?;
    Timestamp::from_second(parsed.validity.not_after.timestamp()).ok()
}

/// The certificates of a PEM text; what is no certificate is passed over.
pub(super) fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect()
}
