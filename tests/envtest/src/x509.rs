//! Names in certificates, and requests for certificates.

use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject};
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME,
    prelude::FromDer,
    x509::X509Name,
};

/// Whom a certificate names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name; empty for none. Of several, the last counts, as in Go.
    pub common_name: String,
    /// Organizations, which are the user's groups.
    pub organizations: Vec<String>,
}

/// A request for a certificate (PKCS #10).
#[derive(Clone, Debug)]
pub struct CertificateRequest {
    /// Whom the certificate is to name.
    pub subject: Subject,
    /// The hosts that it is to name.
    pub dns_names: usize,
    /// The addresses that it is to name.
    pub ip_addresses: usize,
    /// The mail addresses that it is to name.
    pub emails: usize,
    /// The URIs that it is to name.
    pub uris: usize,
    /// The subject, DER.
    pub subject_der: Vec<u8>,
    /// The public key with its algorithm, DER.
    pub public_key_der: Vec<u8>,
    /// The value of the extension with further names, DER.
    pub alternative_names_der: Option<Vec<u8>>,
    der: Vec<u8>,
}

/// Whom a certificate names; none when it cannot be read.
pub fn subject_of(certificate_der: &[u8]) -> Option<Subject> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate_der).ok()?;
    Some(subject(certificate.subject()))
}

fn subject(name: &X509Name<'_>) -> Subject {
    let common_name = name.iter_common_name().last().and_then(|name| name.as_str().ok()).unwrap_or_default();
    let organizations = name.iter_organization().filter_map(|name| name.as_str().ok());
    Subject { common_name: common_name.to_owned(), organizations: organizations.map(str::to_owned).collect() }
}

// === impl CertificateRequest ===

impl CertificateRequest {
    /// Reads PEM. Its signature is checked by [`Self::check_signature`].
    ///
    /// # Errors
    ///
    /// The text is no request; says why.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem)
            .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
        let (_, request) = X509CertificationRequest::from_der(&der).map_err(|error| error.to_string())?;
        let info = &request.certification_request_info;
        let mut read = Self {
            subject: subject(&info.subject),
            dns_names: 0,
            ip_addresses: 0,
            emails: 0,
            uris: 0,
            subject_der: info.subject.as_raw().to_vec(),
            public_key_der: info.subject_pki.raw.to_vec(),
            alternative_names_der: None,
            der: der.to_vec(),
        };
        let attributes = info.iter_attributes().filter_map(|attribute| match attribute.parsed_attribute() {
            x509_parser::cri_attributes::ParsedCriAttribute::ExtensionRequest(requested) => Some(&requested.extensions),
            _ => None,
        });
        for extension in attributes.flatten().filter(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME) {
            let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
                return Err("x509: invalid subject alternative names".to_owned());
            };
            read.alternative_names_der = Some(extension.value.to_vec());
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(_) => read.dns_names += 1,
                    GeneralName::IPAddress(_) => read.ip_addresses += 1,
                    GeneralName::RFC822Name(_) => read.emails += 1,
                    GeneralName::URI(_) => read.uris += 1,
                    _ => {}
                }
            }
        }
        Ok(read)
    }

    /// Whether who asks has the private key.
    ///
    /// # Errors
    ///
    /// Says why not.
    pub fn check_signature(&self) -> Result<(), String> {
        let (_, request) = X509CertificationRequest::from_der(&self.der).map_err(|error| error.to_string())?;
        request.verify_signature().map_err(|error| format!("unable to verify certificate request signature: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    #[test]
    fn a_request_says_whom_it_is_for() {
        let mut params = CertificateParams::new(vec!["n.example".to_owned(), "10.0.0.7".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let request = CertificateRequest::from_pem(pem.as_bytes()).unwrap();
        let expected =
            Subject { common_name: "system:node:n".to_owned(), organizations: vec!["system:nodes".to_owned()] };
        assert_eq!(request.subject, expected);
        assert_eq!((request.dns_names, request.ip_addresses, request.emails, request.uris), (1, 1, 0, 0));
        assert!(request.alternative_names_der.is_some());
        assert_eq!(request.check_signature(), Ok(()));
        let mut forged = request;
        let last = forged.der.len() - 1;
        forged.der[last] ^= 1;
        assert!(forged.check_signature().unwrap_err().starts_with("unable to verify certificate request signature"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for text in ["", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"] {
            assert!(CertificateRequest::from_pem(text.as_bytes()).is_err(), "{text:?}");
        }
        assert_eq!(subject_of(b"nothing"), None);
    }
}
