//! Makes keys, authorities and server certificates.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};

const DAY: Duration = Duration::from_hours(24);
/// Clocks of API servers may lag behind ours by this much.
const CLOCK_SKEW: Duration = Duration::from_mins(5);
const VALIDITY: Duration = Duration::from_secs(10 * 365 * DAY.as_secs());

/// Why a certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// The host is no DNS name and no IP address.
    #[error(
        "cannot make a certificate for {host:?}: {source}; set WEBHOOK_HOST, or SERVICE_NAME and POD_NAMESPACE, to a DNS name"
    )]
    Host {
        /// The host.
        host: String,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// The system has no randomness, or the authority's key does not sign.
    #[error("cannot make a certificate: {0}")]
    Crypto(#[from] rcgen::Error),
}

/// A key and its certificate, as PEM.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) cert: String,
}

/// An authority that can sign: its key, and the certificate that belongs to it.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) cert: String,
}

/// Makes a new authority.
pub(super) fn new_authority(now: Timestamp) -> Result<Pair, IssueError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "webhook-cert-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment, KeyUsagePurpose::KeyCertSign];
    set_validity(&mut params, now);
    Ok(Pair { cert: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

impl Authority {
    /// The authority of a key, when one of the certificates belongs to it and is valid for another year.
    pub(super) fn read(key: &str, certs: &str, now: Timestamp) -> Option<Self> {
        let key = KeyPair::try_from(&pkcs8(key)?).ok()?;
        for der in CertificateDer::pem_slice_iter(certs.as_bytes()).filter_map(Result::ok) {
            let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&der) else { continue };
            let in_a_year = now.as_second().saturating_add(365 * DAY.as_secs().cast_signed());
            let valid = parsed.validity.not_before.timestamp() <= in_a_year
                && in_a_year <= parsed.validity.not_after.timestamp();
            let of_the_key = parsed.tbs_certificate.subject_pki.subject_public_key.data == key.public_key_raw();
            if !(valid && of_the_key && parsed.is_ca()) {
                continue;
            }
            let cert = pem_of("CERTIFICATE", &der);
            return Some(Self { issuer: Issuer::from_ca_cert_der(&der, key).ok()?, cert });
        }
        None
    }

    /// Makes a new key and certificate for a server.
    pub(super) fn server(&self, host: &str, now: Timestamp) -> Result<Pair, IssueError> {
        let name = match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => {
                SanType::DnsName(host.try_into().map_err(|source| IssueError::Host { host: host.to_owned(), source })?)
            }
        };
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        params.subject_alt_names.push(name);
        params.distinguished_name.push(DnType::CommonName, host);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        Ok(Pair { cert: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }
}

fn set_validity(params: &mut CertificateParams, now: Timestamp) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + VALIDITY;
}

/// A private key as PKCS#8. RSA keys that Go programs write are PKCS#1 and are wrapped.
fn pkcs8(pem: &str) -> Option<PrivatePkcs8KeyDer<'static>> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()? {
        PrivateKeyDer::Pkcs8(key) => Some(key),
        PrivateKeyDer::Pkcs1(key) => Some(wrap_rsa(key.secret_pkcs1_der()).into()),
        _ => None,
    }
}

/// PrivateKeyInfo (RFC 5208): version 0, algorithm rsaEncryption, and the PKCS#1 key as octets.
fn wrap_rsa(pkcs1: &[u8]) -> Vec<u8> {
    const VERSION_AND_ALGORITHM: &[u8] =
        &[0x02, 1, 0, 0x30, 13, 0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 0x05, 0];
    let octets = der(0x04, pkcs1);
    der(0x30, &[VERSION_AND_ALGORITHM, &octets].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut out = vec![tag];
    if content.len() >= 0x80 {
        out.push(0x80 | significant.len() as u8);
    }
    out.extend_from_slice(significant);
    out.extend_from_slice(content);
    out
}

/// DER as PEM.
pub(super) fn pem_of(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: String =
        text.as_bytes().chunks(64).flat_map(|line| [String::from_utf8_lossy(line), "\n".into()]).collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}
