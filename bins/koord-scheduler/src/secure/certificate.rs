//! The certificate of the secure port: of files, which may be replaced while the program runs, or made by the program.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use koord_runtime::clock::SharedClock;
use koord_webhook::certificates::{CertificateSet, HotCertificate, decide};

/// How often the files are read again, and a certificate of our own is looked at.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// The name in a certificate that the program makes.
const HOST: &str = "localhost";

/// What is presented to clients.
#[derive(Debug)]
pub(super) struct Certificate {
    files: Option<(PathBuf, PathBuf)>,
    served: Arc<HotCertificate>,
}

impl Certificate {
    /// The certificate of these files (certificate and key), or one that is made now.
    pub(super) fn open(files: Option<(PathBuf, PathBuf)>, now: Timestamp) -> Result<Self> {
        let certificate = Self { files, served: Arc::default() };
        certificate.present(&certificate.set(None, now)?)?;
        Ok(certificate)
    }

    /// What TLS asks at each handshake.
    pub(super) fn served(&self) -> Arc<HotCertificate> {
        Arc::clone(&self.served)
    }

    /// Presents what the files hold now, or a new certificate before the old one ends, for ever.
    pub(super) async fn follow(&self, clock: &SharedClock) {
        let mut last = None;
        loop {
            clock.sleep(LOOK_AGAIN).await;
            let changed = self.set(last.as_ref(), clock.now()).and_then(|set| {
                if last.as_ref() != Some(&set) {
                    self.present(&set)?;
                }
                Ok(set)
            });
            match changed {
                Ok(set) => last = Some(set),
                Err(error) => tracing::warn!("the certificate of the secure port stays as it was: {error:#}"),
            }
        }
    }

    /// The certificate as it should be now, after `last`.
    fn set(&self, last: Option<&CertificateSet>, now: Timestamp) -> Result<CertificateSet> {
        let Some((cert, key)) = &self.files else { return Ok(decide(last, HOST, true, now)?.set) };
        let read = |flag: &str, file: &PathBuf| {
            fs::read_to_string(file).with_context(|| format!("{flag} {} cannot be read", file.display()))
        };
        let (cert, key) = (read("--tls-cert-file", cert)?, read("--tls-private-key-file", key)?);
        Ok(CertificateSet { cert, key, ..CertificateSet::default() })
    }

    fn present(&self, set: &CertificateSet) -> Result<()> {
        self.served.swap(set).context("the certificate of the secure port cannot be used")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn files_are_presented_and_their_mistakes_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let made = Certificate::open(None, now()).unwrap().set(None, now()).unwrap();
        fs::write(&files.0, &made.cert).unwrap();
        let error = Certificate::open(Some(files.clone()), now()).unwrap_err();
        assert!(error.to_string().starts_with("--tls-private-key-file"), "{error}");
        fs::write(&files.1, "no key").unwrap();
        let error = format!("{:#}", Certificate::open(Some(files.clone()), now()).unwrap_err());
        assert_eq!(error, "the certificate of the secure port cannot be used: no server key in PEM form");
        fs::write(&files.1, &made.key).unwrap();
        let certificate = Certificate::open(Some(files), now()).unwrap();
        assert!(certificate.served().presented().is_some());
    }

    #[test]
    fn a_certificate_of_our_own_is_kept_until_it_nears_its_end() {
        let certificate = Certificate::open(None, now()).unwrap();
        let first = certificate.set(None, now()).unwrap();
        assert_eq!(certificate.set(Some(&first), now()).unwrap(), first);
    }
}
