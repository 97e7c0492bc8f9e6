//! What is stored: six entries under the names of Koordinator's Go programs, and three more while a certificate authority is being replaced.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// The content of the Secret or folder, as PEM texts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CertificateSet {
    /// Key of the certificate authority.
    pub ca_key: String,
    /// Certificates of the authorities that clients shall trust. The one of `ca_key` stands first.
    pub ca_certs: String,
    /// Key of the server.
    pub key: String,
    /// Certificate of the server.
    pub cert: String,
    /// Key and certificate of the authority that will sign next. Its certificate is already among `ca_certs`.
    pub next: Option<(String, String)>,
    /// When the authority was announced or began to sign; none while no authority is being replaced.
    pub changed_at: Option<Timestamp>,
}

const CA_KEY: &str = "ca-key.pem";
const NEXT_CA_KEY: &str = "next-ca-key.pem";
const NEXT_CA_CERT: &str = "next-ca-cert.pem";
const CHANGED_AT: &str = "ca-changed-at";

impl CertificateSet {
    /// The name of the entry that clients' trust comes from.
    pub const CA_CERT: &str = "ca-cert.pem";
    /// The entries beyond those six.
    pub const OTHER_ENTRIES: [&str; 3] = [NEXT_CA_KEY, NEXT_CA_CERT, CHANGED_AT];
    const ENTRIES: [&str; 6] = [CA_KEY, Self::CA_CERT, "key.pem", "tls.key", "cert.pem", "tls.crt"];

    /// The names of all entries that there may be.
    pub fn all_names() -> impl Iterator<Item = &'static str> {
        Self::ENTRIES.into_iter().chain(Self::OTHER_ENTRIES)
    }

    /// Reads the entries. The server's key and certificate stand twice; the names that other programs read win.
    pub fn of_entries(entries: &BTreeMap<String, Vec<u8>>) -> Self {
        let text = |name: &str| {
            entries.get(name).filter(|bytes| !bytes.is_empty()).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let either = |first: &str, second: &str| text(first).or_else(|| text(second)).unwrap_or_default();
        Self {
            ca_key: text(CA_KEY).unwrap_or_default(),
            ca_certs: text(Self::CA_CERT).unwrap_or_default(),
            key: either("tls.key", "key.pem"),
            cert: either("tls.crt", "cert.pem"),
            next: text(NEXT_CA_KEY).zip(text(NEXT_CA_CERT)),
            changed_at: text(CHANGED_AT).and_then(|time| time.trim().parse().ok()),
        }
    }

    /// The entries to store.
    pub fn entries(&self) -> BTreeMap<String, Vec<u8>> {
        let mut entries = BTreeMap::from([
            (CA_KEY, &self.ca_key),
            (Self::CA_CERT, &self.ca_certs),
            ("key.pem", &self.key),
            ("tls.key", &self.key),
            ("cert.pem", &self.cert),
            ("tls.crt", &self.cert),
        ]);
        if let Some((key, cert)) = &self.next {
            entries.extend([(NEXT_CA_KEY, key), (NEXT_CA_CERT, cert)]);
        }
        let changed_at = self.changed_at.map(|time| time.to_string());
        entries.extend(changed_at.as_ref().map(|time| (CHANGED_AT, time)));
        entries.into_iter().map(|(name, text)| (name.to_owned(), text.clone().into_bytes())).collect()
    }

    /// The entries that may be written to files: no key of an authority, nor what is of use only with one.
    pub fn public_entries(&self) -> BTreeMap<String, Vec<u8>> {
        let mut entries = self.entries();
        entries.retain(|name, _| ![CA_KEY, NEXT_CA_KEY, NEXT_CA_CERT].contains(&name.as_str()));
        entries
    }

    /// The set that was read from files, with the keys of authorities that `held` has of the same set.
    pub fn with_authority_keys(mut self, held: &Self) -> Self {
        if self.ca_certs == held.ca_certs {
            self.ca_key.clone_from(&held.ca_key);
            self.next.clone_from(&held.next);
        }
        self
    }
}

/// Keys are not shown.
impl std::fmt::Debug for CertificateSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateSet")
            .field("ca_certs", &self.ca_certs)
            .field("cert", &self.cert)
            .field("next", &self.next.as_ref().map(|(_, cert)| cert))
            .field("changed_at", &self.changed_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_survives_being_stored() {
        let set = CertificateSet {
            ca_key: "a".into(),
            ca_certs: "b".into(),
            key: "c".into(),
            cert: "d".into(),
            next: Some(("e".into(), "f".into())),
            changed_at: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        };
        assert_eq!(CertificateSet::of_entries(&set.entries()), set);
        assert_eq!(CertificateSet::of_entries(&BTreeMap::new()), CertificateSet::default());
    }

    #[test]
    fn without_a_change_of_authority_there_are_the_six_entries_of_the_original() {
        let names: Vec<String> = CertificateSet::default().entries().into_keys().collect();
        assert_eq!(names, ["ca-cert.pem", "ca-key.pem", "cert.pem", "key.pem", "tls.crt", "tls.key"]);
    }

    #[test]
    fn keys_are_not_shown_in_logs() {
        let set = CertificateSet { ca_key: "SECRET".into(), key: "SECRET".into(), ..CertificateSet::default() };
        assert!(!format!("{set:?}").contains("SECRET"));
    }
}
