//! Certificates for requests that were approved, as the signers of kube-controller-manager make them.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use jiff::{SignedDuration, Timestamp};
use rcgen::SigningKey as _;

use super::Authority;
use crate::{server::Signer, x509::CertificateRequest};

/// How long a certificate holds at most.
const SECONDS_MAX: i64 = 365 * 24 * 3600;
const SECONDS_MIN: i64 = 600;
/// Clocks may differ by so much.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
/// A certificate that holds for less keeps all of its time.
const SHORT_SECONDS: i64 = 8 * 3600;

/// Bits of the extension `keyUsage`, by name.
const KEY_USAGES: [(&str, u16); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
/// Object identifiers of the extension `extKeyUsage`, by name and in the order in which they are written.
const EXTENDED_KEY_USAGES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 0x25, 0x00]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// `ecdsa-with-SHA256`, by which the authority signs.
const SIGNATURE_ALGORITHM: [u8; 12] = [0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EXTENSION_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENSION_EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const EXTENSION_BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const EXTENSION_ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const TRUE: [u8; 3] = [0x01, 1, 0xff];

/// Signs with an authority.
pub struct AuthoritySigner(pub Arc<Authority>);

impl Signer for AuthoritySigner {
    fn sign(&self, request: &CertificateRequest, usages: &[&str], seconds: Option<i64>) -> Result<String, String> {
        // The certificate is for TLS, which goes by the time of the machine.
        self.0.sign(request, usages, seconds, Timestamp::now())
    }
}

// === impl Authority ===

impl Authority {
    /// A certificate for a request, PEM: with the names that it asks for and for these usages. It holds for `seconds`, or as
    /// long as any does.
    pub(super) fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[&str],
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<String, String> {
        request.check_signature()?;
        let seconds = seconds.map_or(SECONDS_MAX, |seconds| seconds.clamp(SECONDS_MIN, SECONDS_MAX));
        let cannot_tell = |_| "the time of a certificate cannot be told".to_owned();
        let begins = now.checked_sub(BACKDATED).map_err(cannot_tell)?;
        let ends = now.checked_add(SignedDuration::from_secs(seconds)).map_err(cannot_tell)?;
        let ends = if seconds < SHORT_SECONDS { ends } else { ends.checked_sub(BACKDATED).map_err(cannot_tell)? };
        let body = part(
            SEQUENCE,
            &[
                part(0xa0, &[part(INTEGER, &[vec![2]])]),
                serial_number()?,
                SIGNATURE_ALGORITHM.to_vec(),
                self.subject_der()?,
                part(SEQUENCE, &[time(begins), time(ends)]),
                request.subject_der.clone(),
                request.public_key_der.clone(),
                part(0xa3, &[part(SEQUENCE, &extensions(request, usages))]),
            ],
        );
        let signature = self.key().sign(&body).map_err(|error| format!("failed to sign certificate: {error}"))?;
        let der = part(SEQUENCE, &[body, SIGNATURE_ALGORITHM.to_vec(), bits(&signature, 0)]);
        Ok(pem(&der))
    }
}

/// The extensions of a certificate that is for no authority.
fn extensions(request: &CertificateRequest, usages: &[&str]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let wanted = KEY_USAGES.iter().filter(|(name, _)| usages.contains(name));
    let mask = wanted.fold(0_u16, |mask, (_, bit)| mask | (0x8000 >> bit));
    if mask != 0 {
        let unused = mask.trailing_zeros();
        let [high, low] = mask.to_be_bytes();
        let value = if low == 0 { bits(&[high], unused - 8) } else { bits(&[high, low], unused) };
        all.push(extension(EXTENSION_KEY_USAGE, true, value));
    }
    let mut purposes: Vec<&[u8]> = Vec::new();
    for (name, purpose) in EXTENDED_KEY_USAGES {
        if usages.contains(&name) && !purposes.contains(&purpose) {
            purposes.push(purpose);
        }
    }
    if !purposes.is_empty() {
        let purposes: Vec<Vec<u8>> =
            purposes.into_iter().map(|purpose| part(OBJECT_IDENTIFIER, &[purpose.to_vec()])).collect();
        all.push(extension(EXTENSION_EXTENDED_KEY_USAGE, false, part(SEQUENCE, &purposes)));
    }
    all.push(extension(EXTENSION_BASIC_CONSTRAINTS, true, part(SEQUENCE, &[])));
    if let Some(names) = &request.alternative_names_der {
        // They are what counts where the subject is empty.
        let is_critical = request.subject_der == part(SEQUENCE, &[]);
        all.push(extension(EXTENSION_ALTERNATIVE_NAMES, is_critical, names.clone()));
    }
    all
}

fn extension(id: &[u8], is_critical: bool, value: Vec<u8>) -> Vec<u8> {
    let critical = if is_critical { TRUE.to_vec() } else { Vec::new() };
    part(SEQUENCE, &[part(OBJECT_IDENTIFIER, &[id.to_vec()]), critical, part(OCTET_STRING, &[value])])
}

/// 16 random bytes as a positive number.
fn serial_number() -> Result<Vec<u8>, String> {
    let random = ring::rand::generate::<[u8; 16]>(&ring::rand::SystemRandom::new());
    let mut bytes = random.map_err(|_| "the operating system gives no random bytes".to_owned())?.expose();
    // Neither negative nor with zeros before it.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(part(INTEGER, &[bytes.to_vec()]))
}

/// A time, in whole seconds.
fn time(time: Timestamp) -> Vec<u8> {
    let time = jiff::tz::Offset::UTC.to_datetime(time);
    let (date, clock) = (time.date(), time.time());
    let rest =
        format!("{:02}{:02}{:02}{:02}{:02}Z", date.month(), date.day(), clock.hour(), clock.minute(), clock.second());
    match date.year() {
        year @ 1950..2050 => part(UTC_TIME, &[format!("{:02}{rest}", year % 100).into_bytes()]),
        year => part(GENERALIZED_TIME, &[format!("{year:04}{rest}").into_bytes()]),
    }
}

fn bits(bytes: &[u8], unused: u32) -> Vec<u8> {
    let unused = u8::try_from(unused).unwrap_or_default();
    part(BIT_STRING, &[vec![unused], bytes.to_vec()])
}

/// A value of DER: its tag, its length and its parts.
fn part(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let length: usize = parts.iter().map(Vec::len).sum();
    let mut out = vec![tag];
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | u8::try_from(bytes.len() - zeros).unwrap_or_default());
        out.extend_from_slice(&bytes[zeros..]);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

fn pem(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair};
    use rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject};

    use super::*;
    use crate::x509;

    fn request(names: &[&str]) -> CertificateRequest {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        // A second organization has a place of its own.
        params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), DnValue::Utf8String("devs".to_owned()));
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        CertificateRequest::from_pem(pem.as_bytes()).unwrap()
    }

    fn signed(authority: &Authority, usages: &[&str], seconds: Option<i64>, now: Timestamp) -> CertificateDer<'static> {
        let pem = authority.sign(&request(&["n.example", "10.0.0.7"]), usages, seconds, now).unwrap();
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }

    #[test]
    fn a_certificate_has_the_names_usages_and_time_that_were_asked_for() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let authority = Authority::new().unwrap();
        let der = signed(&authority, &["digital signature", "key encipherment", "client auth"], Some(3600), now);
        let (_, read) = x509_parser::parse_x509_certificate(&der).unwrap();
        let usage = read.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.digital_signature() && usage.value.key_encipherment());
        assert!(!usage.value.key_cert_sign());
        let purposes = read.extended_key_usage().unwrap().unwrap().value;
        assert!(purposes.client_auth && !purposes.server_auth && !purposes.any);
        assert!(!read.is_ca());
        let names = &read.subject_alternative_name().unwrap().unwrap().value.general_names;
        assert_eq!(names.len(), 2, "{names:?}");
        let validity = read.validity();
        let start = now.as_second();
        assert_eq!((validity.not_before.timestamp(), validity.not_after.timestamp()), (start - 300, start + 3600));
        assert_eq!(x509::subject_of(&der).unwrap().organizations, ["system:nodes", "devs"]);
    }

    #[test]
    fn a_year_is_the_longest_and_ten_minutes_are_the_shortest() {
        let now: Timestamp = "2049-12-30T00:00:00Z".parse().unwrap();
        let authority = Authority::new().unwrap();
        for (seconds, expected) in [(None, SECONDS_MAX - 300), (Some(i64::MAX), SECONDS_MAX - 300), (Some(1), 600)] {
            let der = signed(&authority, &["server auth"], seconds, now);
            let (_, read) = x509_parser::parse_x509_certificate(&der).unwrap();
            assert_eq!(read.validity().not_after.timestamp() - now.as_second(), expected, "{seconds:?}");
        }
    }

    #[test]
    fn tls_takes_the_certificate_of_a_client_from_its_authority_alone() {
        let now = Timestamp::now();
        let seconds = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.as_second().try_into().unwrap()));
        let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let client = signed(&authority, &["client auth"], None, now);
        let server = signed(&authority, &["server auth"], None, now);
        let verify = |authority: &Authority, der| {
            authority.client_verifier().unwrap().verify_client_cert(der, &[], seconds).is_ok()
        };
        assert!(verify(&authority, &client));
        assert!(!verify(&other, &client), "another authority");
        assert!(!verify(&authority, &server), "not for clients");
        let past = now - SignedDuration::from_hours(2 * 365 * 24);
        assert!(!verify(&authority, &signed(&authority, &["client auth"], None, past)), "it has ended");
    }
}
