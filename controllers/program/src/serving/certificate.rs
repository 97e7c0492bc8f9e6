//! A certificate of the secure port: of files, which may be replaced while the program runs, or made by the program.

use std::{fs, path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use koord_webhook_server::certificates::{CertificateSet, HotCertificate, Unusable, decide};
use parking_lot::Mutex;

/// The name in a certificate that the program makes.
const HOST: &str = "localhost";

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to its authority.
    pub certificate: PathBuf,
    /// The file of the private key.
    pub key: PathBuf,
    /// The flags that name them.
    pub flags: [&'static str; 2],
}

/// What is presented to clients.
#[derive(Debug)]
pub(super) struct Certificate {
    files: Option<CertificateFiles>,
    last: Mutex<Option<CertificateSet>>,
    served: Arc<HotCertificate>,
}

impl Certificate {
    /// The certificate of these files, or one that is made now.
    pub(super) fn open(files: Option<CertificateFiles>, now: Timestamp) -> Result<Self> {
        let certificate = Self { files, last: Mutex::default(), served: Arc::default() };
        certificate.refresh(now)?;
        Ok(certificate)
    }

    /// What TLS asks at each handshake.
    pub(super) fn served(&self) -> &Arc<HotCertificate> {
        &self.served
    }

    /// Presents what the files hold now, or a new certificate before the old one ends. Gives whether it is another one.
    pub(super) fn refresh(&self, now: Timestamp) -> Result<bool> {
        let mut last = self.last.lock();
        let set = self.set(last.as_ref(), now)?;
        if last.as_ref() == Some(&set) {
            return Ok(false);
        }
        let swapped = self.served.swap(&set).map_err(|error| match error {
            // The entry that it names is one of a Secret, and flags name the files here.
            Unusable::Missing(what, _) => anyhow!("no {what} in PEM form"),
            other => other.into(),
        });
        swapped.context("the certificate of the secure port cannot be used")?;
        *last = Some(set);
        Ok(true)
    }

    /// The certificate as it should be now, after `last`.
    fn set(&self, last: Option<&CertificateSet>, now: Timestamp) -> Result<CertificateSet> {
        let Some(CertificateFiles { certificate, key, flags }) = &self.files else {
            return Ok(decide(last, HOST, true, now)?.set);
        };
        let read = |flag: &str, file: &PathBuf| {
            fs::read_to_string(file).with_context(|| format!("{flag} {} cannot be read", file.display()))
        };
        let (cert, key) = (read(flags[0], certificate)?, read(flags[1], key)?);
        Ok(CertificateSet { cert, key, ..CertificateSet::default() })
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
        let flags = ["--tls-cert-file", "--tls-private-key-file"];
        let files =
            CertificateFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key"), flags };
        let made = Certificate::open(None, now()).unwrap().set(None, now()).unwrap();
        fs::write(&files.certificate, &made.cert).unwrap();
        let error = Certificate::open(Some(files.clone()), now()).unwrap_err();
        assert!(error.to_string().starts_with("--tls-private-key-file"), "{error}");
        fs::write(&files.key, "no key").unwrap();
        let error = format!("{:#}", Certificate::open(Some(files.clone()), now()).unwrap_err());
        assert_eq!(error, "the certificate of the secure port cannot be used: no server key in PEM form");
        fs::write(&files.key, &made.key).unwrap();
        let certificate = Certificate::open(Some(files), now()).unwrap();
        assert!(certificate.served().presented().is_some());
    }

    #[test]
    fn a_certificate_of_our_own_is_kept_until_it_nears_its_end() {
        let certificate = Certificate::open(None, now()).unwrap();
        let first = certificate.served().presented();
        assert!(!certificate.refresh(now()).unwrap());
        assert_eq!(certificate.served().presented(), first);
        let later = "2226-01-02T03:04:05Z".parse().unwrap();
        assert!(certificate.refresh(later).unwrap());
        assert_ne!(certificate.served().presented(), first);
    }
}
