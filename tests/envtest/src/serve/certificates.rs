//! A certificate authority, and the certificates that it signs for the server and its clients.

use std::{
    fs::{self, DirBuilder},
    net::IpAddr,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::Arc,
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, SanType,
};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime, pem::PemObject as _},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::kubeconfig::write_private;

/// Names that in-cluster clients use for the API server.
const SERVICE_NAMES: [&str; 5] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// Where an authority is kept.
const CERTIFICATE_FILE: &str = "authority.pem";
const KEY_FILE: &str = "authority.key";

/// What the certificate of an authority says.
fn params() -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "envtest");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A name is not fit for a certificate, or the key cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// TLS does not take the certificate.
    #[error("cannot use the certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate authority whose key never leaves the process.
pub struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// Asks clients for a certificate, and takes any: whose it is is decided for each request, so that one that is not trusted is
/// answered and not cut off.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

// === impl Authority ===

impl Authority {
    /// A fresh ECDSA P-256 authority.
    pub fn new() -> Result<Self, CertificateError> {
        let (params, key) = (params()?, KeyPair::generate()?);
        let certificate = params.self_signed(&key)?;
        let (pem, certificate) = (certificate.pem(), certificate.der().clone());
        Ok(Self { params, key, certificate, pem })
    }

    /// The authority that this folder holds, so that certificates hold over restarts; a fresh one, which the folder holds from
    /// then on, where it has none that can be used. What a disk refuses is no failure here: it refuses objects as well.
    pub fn kept(folder: &Path) -> Result<Self, CertificateError> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        if let (Some(pem), Some(key)) = (read(CERTIFICATE_FILE), read(KEY_FILE))
            && let Some(known) = Self::read(pem, &key)
        {
            return Ok(known);
        }
        let fresh = Self::new()?;
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let _ = write_private(&folder.join(KEY_FILE), &fresh.key.serialize_pem());
        let _ = write_private(&folder.join(CERTIFICATE_FILE), &fresh.pem);
        Ok(fresh)
    }

    fn read(pem: String, key: &str) -> Option<Self> {
        let key = KeyPair::from_pem(key).ok()?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).ok()?;
        let is_of_key = parsed.public_key().raw == key.subject_public_key_info();
        Some(Self { params: params().ok()?, key, certificate: certificate.clone(), pem }).filter(|_| is_of_key)
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }

    pub(super) fn key(&self) -> &KeyPair {
        &self.key
    }

    /// Its own name, DER.
    pub(super) fn subject_der(&self) -> Result<Vec<u8>, String> {
        let (_, read) = x509_parser::parse_x509_certificate(&self.certificate).map_err(|error| error.to_string())?;
        Ok(read.subject().as_raw().to_vec())
    }

    /// The authority's certificate, PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a client, and its key: `name` is the user, and `group` the group that the user is in.
    pub fn client(
        &self,
        name: &str,
        group: &str,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), CertificateError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer())?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((CertificateDer::from(certificate.der().to_vec()), key))
    }

    /// Takes certificates of clients that this authority has signed.
    pub fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
        builder.build().map_err(|error| CertificateError::Use(rustls::Error::General(error.to_string())))
    }

    /// TLS for a server at `ip` and under `names`, speaking HTTP/2 and HTTP/1.1.
    pub fn server_config(&self, ip: IpAddr, names: &[String]) -> Result<ServerConfig, CertificateError> {
        let names: Vec<String> = SERVICE_NAMES.iter().map(ToString::to_string).chain(names.iter().cloned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for ip in [ip, [127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()] {
            if !ip.is_unspecified() {
                params.subject_alt_names.push(SanType::IpAddress(ip));
            }
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer())?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyCertificate(self.client_verifier()?)))
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

// === impl AnyCertificate ===

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_the_same_after_a_restart_unless_its_files_are_broken() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("data");
        let first = Authority::kept(&place).unwrap();
        let again = Authority::kept(&place).unwrap();
        assert_eq!(first.pem(), again.pem());
        assert_eq!(again.key().serialize_pem(), first.key().serialize_pem());
        fs::write(place.join(KEY_FILE), KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let other = Authority::kept(&place).unwrap();
        assert_ne!(first.pem(), other.pem(), "the key is another's");
        assert_eq!(Authority::kept(&place).unwrap().pem(), other.pem());
    }

    #[test]
    fn a_folder_that_cannot_be_written_keeps_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_ne!(Authority::kept(&file).unwrap().pem(), Authority::kept(&file).unwrap().pem());
    }
}
