//! Certificates of the secure port by the names that clients ask for.

use std::{str::FromStr, sync::Arc};

use anyhow::Result;
use jiff::Timestamp;
use koord_webhook_server::certificates::HotCertificate;
use parking_lot::RwLock;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

use super::certificate::{Certificate, CertificateFiles};

const FLAG: &str = "--tls-sni-cert-key";

/// A certificate for some names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// Its files.
    pub files: CertificateFiles,
    /// The names, which may begin with `*.`; without any those in the certificate.
    pub names: Vec<String>,
}

/// Reads a flag such as `foo.crt,foo.key:*.foo.com,foo.com`.
impl FromStr for NamedCertificate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (files, names) = text.split_once(':').map_or((text, None), |(files, names)| (files, Some(names.trim())));
        if names.is_some_and(str::is_empty) {
            return Err("empty names list is not allowed".to_owned());
        }
        let files = files.split_once(',').filter(|(_, key)| !key.contains(','));
        let Some((certificate, key)) = files else {
            return Err("expected comma separated certificate and key file paths".to_owned());
        };
        let files =
            CertificateFiles { certificate: certificate.trim().into(), key: key.trim().into(), flags: [FLAG; 2] };
        let names = names.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_ascii_lowercase());
        Ok(Self { files, names: names.collect() })
    }
}

/// What is presented to clients: the certificate for the name that they ask for, or the default one.
#[derive(Debug)]
pub(super) struct Certificates {
    default: Certificate,
    named: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    certificate: Certificate,
    /// The names that the flag gives.
    given: Vec<String>,
    /// The names in the certificate, where the flag gives none.
    found: RwLock<Vec<String>>,
}

impl Certificates {
    pub(super) fn open(
        default: Option<CertificateFiles>,
        named: Vec<NamedCertificate>,
        now: Timestamp,
    ) -> Result<Self> {
        let default = Certificate::open(default, now)?;
        let named = named.into_iter().map(|named| Named::open(named, now)).collect::<Result<_>>()?;
        Ok(Self { default, named })
    }

    /// The certificate for clients that ask for no name.
    pub(super) fn default(&self) -> &Arc<HotCertificate> {
        self.default.served()
    }

    /// Presents what the files hold now.
    pub(super) fn refresh(&self, now: Timestamp) -> Result<()> {
        self.default.refresh(now)?;
        self.named.iter().try_for_each(|named| named.refresh(now))
    }

    /// The certificate for a name. Names that flags give go before those in certificates, the first certificate before the
    /// others, and a whole name before one that begins with `*`.
    fn of(&self, name: Option<&str>) -> &HotCertificate {
        let Some(name) = name.map(str::to_ascii_lowercase) else { return self.default() };
        let any = name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
        let known = [Some(name), any].into_iter().flatten().find_map(|name| {
            let given = self.named.iter().find(|named| named.given.contains(&name));
            given.or_else(|| self.named.iter().find(|named| named.found.read().contains(&name)))
        });
        known.map_or(self.default(), |named| named.certificate.served())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.of(hello.server_name()).resolve(hello)
    }
}

impl Named {
    fn open(NamedCertificate { files, names }: NamedCertificate, now: Timestamp) -> Result<Self> {
        let named = Self { certificate: Certificate::open(Some(files), now)?, given: names, found: RwLock::default() };
        named.find();
        Ok(named)
    }

    fn refresh(&self, now: Timestamp) -> Result<()> {
        if self.certificate.refresh(now)? {
            self.find();
        }
        Ok(())
    }

    fn find(&self) {
        if self.given.is_empty() {
            let presented = self.certificate.served().presented();
            *self.found.write() = presented.as_deref().map(names).unwrap_or_default();
        }
    }
}

/// The names of hosts in a certificate.
fn names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return Vec::new() };
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let of_hosts = alternative.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    common.chain(of_hosts).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn named(folder: &TempDir, host: &str, names: &str) -> NamedCertificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new([host.to_owned()]).unwrap().self_signed(&key).unwrap();
        let files = ["crt", "key"].map(|kind| folder.path().join(format!("{host}.{kind}")));
        std::fs::write(&files[0], certificate.pem()).unwrap();
        std::fs::write(&files[1], key.serialize_pem()).unwrap();
        format!("{},{}{names}", files[0].display(), files[1].display()).parse().unwrap()
    }

    #[test]
    fn the_certificate_is_that_of_the_name_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let all = vec![named(&folder, "a.example", ""), named(&folder, "b.example", ":*.b.example, A.example")];
        let certificates = Certificates::open(None, all, Timestamp::now()).unwrap();
        let presented = |name: Option<&str>| certificates.of(name).presented();
        let [of_a, of_b] = [0, 1].map(|at| certificates.named[at].certificate.served().presented());
        let default = certificates.default().presented();
        assert!(default != of_a && of_a != of_b && of_b.is_some());
        assert_eq!(presented(None), default);
        assert_eq!(presented(Some("other.example")), default);
        assert_eq!(presented(Some("a.example")), of_b, "what a flag gives goes first");
        assert_eq!(presented(Some("X.B.example")), of_b);
        assert_eq!(presented(Some("y.x.b.example")), default);
        assert_eq!(presented(Some("b.example")), default, "its own names do not count where others are given");
        let alone = Certificates::open(None, vec![named(&folder, "c.example", "")], Timestamp::now()).unwrap();
        assert_eq!(alone.of(Some("c.example")).presented(), alone.named[0].certificate.served().presented());
        named(&folder, "c.example", "");
        alone.refresh(Timestamp::now()).unwrap();
        assert_eq!(alone.of(Some("c.example")).presented(), alone.named[0].certificate.served().presented());
    }

    #[test]
    fn a_wrong_flag_says_what_is_expected() {
        let wrong = |text: &str| text.parse::<NamedCertificate>().unwrap_err();
        assert_eq!(wrong("a.crt,a.key:"), "empty names list is not allowed");
        for text in ["", "a.crt", "a.crt,a.key,b"] {
            assert_eq!(wrong(text), "expected comma separated certificate and key file paths");
        }
    }
}
