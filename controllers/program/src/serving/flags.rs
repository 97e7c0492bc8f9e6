//! The flags of a secure port.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgAction, Args};
use koord_webhook_server::TlsPolicy;

use super::{certificate::CertificateFiles, client_flags::ClientFlags, names::NamedCertificate, port::SecurePort};
use crate::flags::{count, span, switch, wrong};

/// Flags of a secure port, those of the components of Kubernetes: `#[command(flatten)]` them. The flag with the port is the program's own.
#[derive(Clone, Debug, Args)]
pub struct SecureServingFlags {
    /// Address of the secure port.
    #[arg(long, default_value_t = Ipv4Addr::UNSPECIFIED.into(), value_name = "IP")]
    bind_address: IpAddr,
    /// Certificate of the secure port; without it the program makes one.
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, value_name = "FILE")]
    tls_private_key_file: Option<PathBuf>,
    /// Another certificate and its key, for clients that ask for one of these names; without names for those in the certificate.
    /// May be repeated.
    #[arg(long, value_name = "CERT,KEY[:NAME,…]", action = ArgAction::Append)]
    tls_sni_cert_key: Vec<NamedCertificate>,
    /// Client certificates.
    #[command(flatten)]
    clients: ClientFlags,
    /// Paths that everybody may read at the secure port.
    #[arg(long, default_value = "/healthz,/readyz,/livez", value_delimiter = ',', value_name = "PATH,…")]
    authorization_always_allow_paths: Vec<String>,
    /// How long the answer of the API server about a token holds.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
    authentication_token_webhook_cache_ttl: Duration,
    /// The oldest version of TLS that the secure port speaks: VersionTLS12, or VersionTLS13. Older ones are never spoken.
    #[arg(long, value_name = "VERSION")]
    tls_min_version: Option<String>,
    /// The cipher suites of the secure port for TLS 1.2, by their IANA names; without it those of rustls.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    tls_cipher_suites: Vec<String>,
    /// Do not speak HTTP/2 at the secure port.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    disable_http2_serving: bool,
    /// Most requests at once on an HTTP/2 connection to the secure port; 0 for the server's own limit.
    #[arg(long, default_value = "0", value_name = "N", value_parser = count)]
    http2_max_streams_per_connection: u32,
    /// How long a permission of the API server holds.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
    authorization_webhook_cache_authorized_ttl: Duration,
    /// How long a refusal of the API server holds.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
    authorization_webhook_cache_unauthorized_ttl: Duration,
}

/// How TLS is spoken.
#[derive(Clone, Debug)]
pub struct TlsFlags {
    /// Versions and cipher suites.
    pub policy: TlsPolicy,
    /// Cipher suites that were asked for and are not safe, so that they are not served.
    pub unserved_suites: Vec<String>,
}

impl SecureServingFlags {
    /// Checks values that are more than words. An error names the flag.
    pub fn check(&self) -> Result<TlsFlags, clap::Error> {
        self.clients.check()?;
        let version = self.tls_min_version.as_deref().filter(|version| !version.is_empty());
        let policy = version.map_or(Ok(TlsPolicy::default()), |version| TlsPolicy::default().since(version));
        let policy = policy.map_err(|reason| wrong("tls-min-version", reason))?;
        let names: Vec<String> = self.tls_cipher_suites.iter().filter(|name| !name.is_empty()).cloned().collect();
        let (policy, unserved_suites) = if names.is_empty() {
            (policy, Vec::new())
        } else {
            policy.among(&names).map_err(|reason| wrong("tls-cipher-suites", reason))?
        };
        match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(_), None) => Err(wrong("tls-cert-file", "--tls-private-key-file must name its key")),
            (None, Some(_)) => Err(wrong("tls-private-key-file", "--tls-cert-file must name its certificate")),
            _ => Ok(TlsFlags { policy, unserved_suites }),
        }
    }

    /// The secure port of these flags: at the chosen port, or at the default one as far as that is free; `None` at port 0.
    pub fn secure_port(&self, chosen: Option<u16>, default: u16, tls: TlsPolicy) -> Option<SecurePort> {
        let address = SocketAddr::new(self.bind_address, chosen.unwrap_or(default));
        (address.port() != 0).then(|| SecurePort {
            address,
            is_chosen: chosen.is_some(),
            files: self.tls_cert_file.clone().zip(self.tls_private_key_file.clone()).map(|(certificate, key)| {
                CertificateFiles { certificate, key, flags: ["--tls-cert-file", "--tls-private-key-file"] }
            }),
            named: self.tls_sni_cert_key.clone(),
            tls: if self.disable_http2_serving { tls.without_http2() } else { tls },
            streams_max: (self.http2_max_streams_per_connection != 0).then_some(self.http2_max_streams_per_connection),
            client_authority: self.clients.authority(),
            front_proxy: self.clients.front_proxy(),
            open_paths: self.authorization_always_allow_paths.clone(),
            token_life: self.authentication_token_webhook_cache_ttl,
            permission_life: self.authorization_webhook_cache_authorized_ttl,
            refusal_life: self.authorization_webhook_cache_unauthorized_ttl,
        })
    }
}
