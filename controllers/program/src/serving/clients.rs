//! Users whose certificates say who they are, and those for whom a front proxy speaks.

use std::fmt::Write as _;

use anyhow::Result;
use axum::http::HeaderMap;
use jiff::Timestamp;
use koord_listen::PeerCertificates;
use sha2::{Digest as _, Sha256};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate};

use super::{
    authority::Authority,
    port::{FrontProxy, SecurePort},
    user::User,
};

/// Under this key a user has the fingerprint of the certificate.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Whose certificates are trusted.
#[derive(Debug)]
pub(super) struct Clients {
    users: Option<Authority>,
    proxy: Option<(Authority, FrontProxy)>,
}

/// A client shows a certificate that no authority has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untrusted;

impl Clients {
    pub(super) fn open(settings: &SecurePort) -> Result<Self> {
        let users = settings.client_authority.clone().map(|file| Authority::open("--client-ca-file", file));
        let proxy = settings.front_proxy.clone().map(|proxy| {
            let authority = Authority::open("--requestheader-client-ca-file", proxy.authority.clone())?;
            anyhow::Ok((authority, proxy))
        });
        Ok(Self { users: users.transpose()?, proxy: proxy.transpose()? })
    }

    /// Whether clients are asked for certificates.
    pub(super) fn are_asked(&self) -> bool {
        self.users.is_some() || self.proxy.is_some()
    }

    /// Takes what the files of the authorities hold now.
    pub(super) fn refresh(&self) -> Result<()> {
        let proxy = self.proxy.as_ref().map(|(authority, _)| authority);
        self.users.iter().chain(proxy).try_for_each(Authority::refresh)
    }

    /// The user of a request: the one that a front proxy names, or else the client itself; none where neither is said.
    pub(super) fn user(
        &self,
        shown: Option<&PeerCertificates>,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<User>, Untrusted> {
        let Some(shown) = shown.filter(|_| self.are_asked()) else { return Ok(None) };
        let Some((own, _)) = shown.split() else { return Ok(None) };
        let Ok((_, own)) = parse_x509_certificate(own) else { return Err(Untrusted) };
        let mut is_trusted = true;
        if let Some((authority, proxy)) = &self.proxy {
            let is_proxy = authority.verify(shown, now).is_ok() && proxy.is(common_name(&own).as_deref());
            if let Some(user) = proxy.user(headers).filter(|_| is_proxy) {
                return Ok(Some(user));
            }
            is_trusted &= is_proxy;
        }
        if let Some(authority) = &self.users {
            match authority.verify(shown, now) {
                Ok(()) => {
                    if let Some(user) = user_of(&own, shown) {
                        return Ok(Some(user));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a client's certificate is not trusted");
                    is_trusted = false;
                }
            }
        }
        if is_trusted { Ok(None) } else { Err(Untrusted) }
    }
}

impl FrontProxy {
    /// Whether a client of this name may speak for others.
    fn is(&self, name: Option<&str>) -> bool {
        self.names.is_empty() || name.is_some_and(|name| self.names.iter().any(|known| known == name))
    }

    /// The user that the headers name.
    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let username = values(headers, &self.username_headers).next()?.to_owned();
        let uid = values(headers, &self.uid_headers).next().unwrap_or_default().to_owned();
        let groups = values(headers, &self.group_headers).map(str::to_owned).collect();
        let mut user = User { username, uid, groups, ..User::default() };
        for prefix in &self.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            for (name, value) in headers {
                let Some(key) = name.as_str().strip_prefix(&prefix) else { continue };
                let key = unescaped(key).unwrap_or_else(|| key.to_owned());
                user.extra.entry(key).or_default().extend(value.to_str().map(str::to_owned));
            }
        }
        Some(user)
    }
}

/// The values of these headers that say something, header by header.
fn values<'h>(headers: &'h HeaderMap, names: &'h [String]) -> impl Iterator<Item = &'h str> {
    let values = names.iter().flat_map(|name| headers.get_all(name.as_str()));
    values.filter_map(|value| value.to_str().ok()).filter(|value| !value.is_empty())
}

/// What stands in a header's name with `%` before the two digits of a byte; none where that is no text.
fn unescaped(key: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(key.len()), key.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The last of the common names, as Go takes it.
fn common_name(certificate: &X509Certificate<'_>) -> Option<String> {
    let name = certificate.subject().iter_common_name().last()?;
    name.as_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The user that a certificate names: its common name, in the groups of its organizations.
fn user_of(certificate: &X509Certificate<'_>, shown: &PeerCertificates) -> Option<User> {
    let username = common_name(certificate)?;
    let organizations = certificate.subject().iter_organization();
    let groups = organizations.filter_map(|name| name.as_str().ok()).map(str::to_owned).collect();
    let mut fingerprint = "X509SHA256=".to_owned();
    for byte in Sha256::digest(shown.split()?.0) {
        // Writing to a text does not fail.
        let _ = write!(fingerprint, "{byte:02x}");
    }
    let extra = [(CREDENTIAL.to_owned(), vec![fingerprint])].into();
    Some(User { username, groups, extra, ..User::default() })
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
    use rustls::pki_types::CertificateDer;
    use tempfile::TempDir;

    use super::*;

    struct Issuer(CertifiedIssuer<'static, KeyPair>);

    impl Issuer {
        fn new() -> Self {
            let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
        }

        fn signs(&self, name: &str, organization: &str) -> PeerCertificates {
            let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            params.distinguished_name.push(DnType::OrganizationName, organization);
            let issuer: &rcgen::Issuer<'_, KeyPair> = &self.0;
            let signed = params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap();
            PeerCertificates::of(&[CertificateDer::from(signed.der().to_vec())]).unwrap()
        }
    }

    fn clients(folder: &TempDir, users: Option<&Issuer>, proxy: Option<(&Issuer, &[&str])>) -> Clients {
        let authority = |name: &str, issuer: &Issuer| {
            let file = folder.path().join(name);
            std::fs::write(&file, issuer.0.pem()).unwrap();
            file
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let users = users.map(|issuer| Authority::open("--client-ca-file", authority("users", issuer)).unwrap());
        let proxy = proxy.map(|(issuer, names)| {
            let settings = FrontProxy {
                authority: authority("proxy", issuer),
                names: texts(names),
                username_headers: texts(&["X-Remote-User", "X-Other-User"]),
                uid_headers: texts(&["X-Remote-Uid"]),
                group_headers: texts(&["X-Remote-Group"]),
                extra_prefixes: texts(&["X-Remote-Extra-"]),
            };
            (Authority::open("--requestheader-client-ca-file", settings.authority.clone()).unwrap(), settings)
        });
        Clients { users, proxy }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_certificate_names_a_user_and_the_groups() {
        let (folder, issuer, now) = (tempfile::tempdir().unwrap(), Issuer::new(), Timestamp::now());
        let clients = clients(&folder, Some(&issuer), None);
        let known = clients.user(Some(&issuer.signs("jo", "ops")), &headers(&[]), now).unwrap().unwrap();
        assert_eq!((&*known.username, &known.groups), ("jo", &vec!["ops".to_owned()]));
        assert_eq!(known.extra[CREDENTIAL][0].len(), "X509SHA256=".len() + 64);
        let nameless = clients.user(Some(&issuer.signs("", "ops")), &headers(&[]), now);
        assert_eq!(nameless, Ok(None));
        let other = Issuer::new();
        assert_eq!(clients.user(Some(&other.signs("jo", "ops")), &headers(&[]), now), Err(Untrusted));
        assert_eq!(clients.user(None, &headers(&[("x-remote-user", "root")]), now), Ok(None));
        std::fs::write(folder.path().join("users"), other.0.pem()).unwrap();
        clients.refresh().unwrap();
        assert!(clients.user(Some(&other.signs("jo", "ops")), &headers(&[]), now).is_ok());
        let expired = "5000-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(clients.user(Some(&other.signs("jo", "ops")), &headers(&[]), expired), Err(Untrusted));
    }

    #[test]
    fn a_front_proxy_names_users_in_headers() {
        let (folder, issuer, now) = (tempfile::tempdir().unwrap(), Issuer::new(), Timestamp::now());
        let named = headers(&[
            ("x-remote-user", ""),
            ("x-other-user", "jo"),
            ("x-remote-uid", "7"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-example.com%2fteam", "blue"),
        ]);
        let trusting = clients(&folder, None, Some((&issuer, &["front"])));
        let user = trusting.user(Some(&issuer.signs("front", "x")), &named, now).unwrap().unwrap();
        assert_eq!((&*user.username, &*user.uid, user.groups), ("jo", "7", vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(user.extra["example.com/team"], ["blue"]);
        assert_eq!(trusting.user(Some(&issuer.signs("front", "x")), &headers(&[]), now), Ok(None), "nobody is named");
        assert_eq!(trusting.user(Some(&issuer.signs("back", "x")), &named, now), Err(Untrusted));
        assert_eq!(trusting.user(Some(&Issuer::new().signs("front", "x")), &named, now), Err(Untrusted));
        let any = clients(&folder, None, Some((&issuer, &[])));
        assert!(any.user(Some(&issuer.signs("back", "x")), &named, now).unwrap().is_some());
    }

    #[test]
    fn who_is_no_front_proxy_speaks_for_itself() {
        let (folder, users, proxies) = (tempfile::tempdir().unwrap(), Issuer::new(), Issuer::new());
        let clients = clients(&folder, Some(&users), Some((&proxies, &[])));
        let named = headers(&[("x-remote-user", "root")]);
        let user = clients.user(Some(&users.signs("jo", "ops")), &named, Timestamp::now());
        assert_eq!(user.unwrap().unwrap().username, "jo");
    }

    #[test]
    fn what_is_escaped_is_read_where_it_is_a_text() {
        assert_eq!(unescaped("a%2Fb").as_deref(), Some("a/b"));
        assert_eq!((unescaped("a%2"), unescaped("a%zz"), unescaped("%ff")), (None, None, None));
    }
}
