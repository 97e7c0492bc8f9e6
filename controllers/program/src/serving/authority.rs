//! Certificate authorities of clients.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use koord_listen::PeerCertificates;
use parking_lot::RwLock;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime, pem::PemObject as _},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

/// The authorities in a file, which may be replaced while the program runs.
#[derive(Debug)]
pub(super) struct Authority {
    flag: &'static str,
    file: PathBuf,
    verifier: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl Authority {
    /// Of the file that a flag names.
    pub(super) fn open(flag: &'static str, file: PathBuf) -> Result<Self> {
        let verifier = RwLock::new(read(flag, &file)?);
        Ok(Self { flag, file, verifier })
    }

    /// Takes what the file holds now.
    pub(super) fn refresh(&self) -> Result<()> {
        *self.verifier.write() = read(self.flag, &self.file)?;
        Ok(())
    }

    /// Whether one of the authorities has signed what a client shows, for clients and for this time.
    pub(super) fn verify(&self, shown: &PeerCertificates, now: Timestamp) -> Result<(), Error> {
        let Some((own, between)) = shown.split() else { return Err(Error::NoCertificatesPresented) };
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verifier = Arc::clone(&self.verifier.read());
        verifier.verify_client_cert(own, between, now).map(|_| ())
    }
}

fn read(flag: &str, file: &Path) -> Result<Arc<dyn ClientCertVerifier>> {
    let cannot = || format!("{flag} {} cannot be used", file.display());
    let text = fs::read(file).with_context(|| format!("{flag} {} cannot be read", file.display()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots.add(certificate.with_context(cannot)?).with_context(cannot)?;
    }
    if roots.is_empty() {
        bail!("{flag} {} has no certificate in PEM form", file.display());
    }
    let provider = Arc::new(ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().with_context(cannot)
}

/// Asks clients for a certificate, and takes any: as in API servers, whose it is is decided for each request.
#[derive(Debug)]
pub(super) struct AnyCertificate;

fn algorithms() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _own: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}
