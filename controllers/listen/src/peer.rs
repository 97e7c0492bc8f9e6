//! Who is at the other end of a connection, as TLS knows it.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;

/// The certificates that a client has shown: its own first, then those that lead to its authority. It is an extension of every
/// request of a connection whose client has shown any, which clients do where the server's TLS configuration asks for them.
/// Whether they are trusted is what the verifier of that configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificates(Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// Of these certificates; none where there are none.
    pub fn of(certificates: &[CertificateDer<'_>]) -> Option<Self> {
        let certificates = certificates.iter().map(|certificate| certificate.clone().into_owned());
        Some(Self(certificates.collect())).filter(|shown| !shown.0.is_empty())
    }

    /// The client's own certificate, and those between it and its authority.
    pub fn split(&self) -> Option<(&CertificateDer<'static>, &[CertificateDer<'static>])> {
        self.0.split_first()
    }
}
