//! Users by the certificates that they show.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_listen::PeerCertificates;
use rustls::{pki_types::UnixTime, server::danger::ClientCertVerifier};
use sha2::{Digest, Sha256};

use crate::request::User;
use crate::x509;

/// The attribute that says by which certificate a user is known.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// A certificate that nobody who is trusted has signed, or not for this time and use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untrusted;

/// Knows the users whose certificates an authority has signed.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<dyn ClientCertVerifier>);

// === impl Certificates ===

impl Certificates {
    /// Those that this verifier takes.
    pub fn new(verifier: Arc<dyn ClientCertVerifier>) -> Self {
        Self(verifier)
    }

    /// The user that a certificate names: its common name, in the groups of its organizations. None for a certificate that
    /// names nobody.
    pub(super) fn user(&self, shown: &PeerCertificates, now: Timestamp) -> Result<Option<User>, Untrusted> {
        let (own, between) = shown.split().ok_or(Untrusted)?;
        let seconds = u64::try_from(now.as_second()).map_err(|_| Untrusted)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.0.verify_client_cert(own, between, now).map_err(|error| {
            tracing::debug!(%error, "the certificate of a client is not trusted");
            Untrusted
        })?;
        let subject = x509::subject_of(own).ok_or(Untrusted)?;
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        let mut fingerprint = "X509SHA256=".to_owned();
        for byte in Sha256::digest(own) {
            // Writing to a text does not fail.
            let _ = write!(fingerprint, "{byte:02x}");
        }
        let mut groups = subject.organizations;
        let authenticated = "system:authenticated".to_owned();
        if !groups.contains(&authenticated) {
            groups.push(authenticated);
        }
        let extra = vec![(CREDENTIAL.to_owned(), vec![fingerprint])];
        Ok(Some(User { name: subject.common_name, groups, extra, ..User::default() }))
    }
}
