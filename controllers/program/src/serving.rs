//! Serving with TLS to users whom the API server permits it, as the components of Kubernetes do: certificates that are read again, client
//! certificates, proxies in front, bearer tokens, and permissions.
//!
//! Read first: [`SecureServingFlags`] (the flags), [`SecurePort`] (what they say, and how it is served).

mod access;
mod authority;
mod certificate;
mod client_flags;
mod clients;
mod flags;
mod names;
mod port;
mod user;

pub use self::{
    certificate::CertificateFiles,
    flags::{SecureServingFlags, TlsFlags},
    names::NamedCertificate,
    port::{FrontProxy, SecurePort},
};
