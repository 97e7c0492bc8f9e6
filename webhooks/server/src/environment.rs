//! The settings of the server, as the original's environment variables give them.

use std::{
    env,
    net::{IpAddr, Ipv6Addr},
    path::PathBuf,
};

/// The original's port, to which its Service still points.
pub const ORIGINAL_PORT: u16 = 9876;
/// Our port when none is set.
pub const DEFAULT_PORT: u16 = 9443;

pub(crate) const SECRET: &str = "koordinator-webhook-certs";
pub(crate) const MUTATING: &str = "koordinator-mutating-webhook-configuration";
pub(crate) const VALIDATING: &str = "koordinator-validating-webhook-configuration";

/// The settings of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// The port that must be served, and another that is served too if it is free.
    pub port: u16,
    /// See `port`.
    pub second_port: Option<u16>,
    /// The address to listen on: all of this machine's, of both families, or the host when that is an address of the
    /// loopback.
    pub listen: IpAddr,
    /// The name that API servers call, instead of a Service.
    pub host: Option<String>,
    /// Where certificates are written as files, for other programs of the pod and for the next start.
    pub cert_dir: Option<PathBuf>,
    /// Where certificates come from.
    pub cert_writer: CertWriter,
    /// The namespace of the Secret and the Service.
    pub namespace: String,
    /// The Secret with the certificates.
    pub secret: String,
    /// The Service that API servers call.
    pub service: String,
    /// The MutatingWebhookConfiguration that is kept right.
    pub mutating: String,
    /// The ValidatingWebhookConfiguration that is kept right.
    pub validating: String,
}

/// Where certificates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertWriter {
    /// A Secret, shared by all replicas.
    Secret,
    /// The folder, and without one the memory of the process: for one replica outside of the cluster.
    Folder,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name}={value:?}: {wanted}")]
pub struct EnvironmentError {
    name: &'static str,
    value: String,
    wanted: &'static str,
}

impl Environment {
    /// The settings of this process.
    pub fn read() -> Result<Self, EnvironmentError> {
        Self::from(|name| env::var(name).ok())
    }

    /// The settings that `variable` gives. An empty variable counts as unset.
    pub fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let or = |name: &str, default: &str| set(name).unwrap_or_else(|| default.to_owned());
        let wrong = |name, value, wanted| EnvironmentError { name, value, wanted };
        let (port, second_port) = match set("WEBHOOK_PORT") {
            None => (DEFAULT_PORT, Some(ORIGINAL_PORT)),
            Some(text) => {
                (text.parse().map_err(|_| wrong("WEBHOOK_PORT", text, "expected a port from 0 to 65535"))?, None)
            }
        };
        let host = set("WEBHOOK_HOST");
        let loopback = host.as_deref().and_then(|host| host.parse().ok()).filter(IpAddr::is_loopback);
        let cert_dir = set("WEBHOOK_CERT_DIR").map(PathBuf::from);
        let cert_writer = match (set("WEBHOOK_CERT_WRITER").as_deref(), &host) {
            (Some("fs"), _) if cert_dir.is_none() => {
                let wanted = "WEBHOOK_CERT_DIR must name a folder that only this program can write";
                return Err(wrong("WEBHOOK_CERT_WRITER", "fs".to_owned(), wanted));
            }
            (Some("fs"), _) | (None, Some(_)) => CertWriter::Folder,
            (Some("secret"), _) | (None, None) => CertWriter::Secret,
            (Some(other), _) => {
                return Err(wrong("WEBHOOK_CERT_WRITER", other.to_owned(), "expected fs or secret"));
            }
        };
        Ok(Self {
            port,
            second_port,
            listen: loopback.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            host,
            cert_dir,
            cert_writer,
            namespace: or("POD_NAMESPACE", "koordinator-system"),
            secret: or("SECRET_NAME", SECRET),
            service: or("SERVICE_NAME", "koordinator-webhook-service"),
            mutating: or("MUTATING_WEBHOOK_NAME", MUTATING),
            validating: or("VALIDATING_WEBHOOK_NAME", VALIDATING),
        })
    }

    /// The name that certificates are made for.
    pub fn dns_name(&self) -> String {
        self.host.clone().unwrap_or_else(|| format!("{}.{}.svc", self.service, self.namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment::from(of)
    }

    #[test]
    fn without_a_port_both_ports_are_served() {
        let environment = given(&[]).unwrap();
        assert_eq!((environment.port, environment.second_port), (9443, Some(9876)));
        assert_eq!(environment.dns_name(), "koordinator-webhook-service.koordinator-system.svc");
        assert_eq!(environment.cert_writer, CertWriter::Secret);
    }

    #[test]
    fn a_port_that_is_set_is_the_only_one() {
        let environment = given(&[("WEBHOOK_PORT", "10250")]).unwrap();
        assert_eq!((environment.port, environment.second_port), (10250, None));
    }

    #[test]
    fn a_host_means_certificates_in_the_folder_unless_the_writer_is_named() {
        let host = ("WEBHOOK_HOST", "127.0.0.1");
        assert_eq!(given(&[host]).unwrap().cert_writer, CertWriter::Folder);
        assert_eq!(given(&[host]).unwrap().listen, std::net::Ipv4Addr::LOCALHOST);
        assert_eq!(given(&[("WEBHOOK_HOST", "::1")]).unwrap().listen, Ipv6Addr::LOCALHOST);
        assert_eq!(given(&[host, ("WEBHOOK_CERT_WRITER", "secret")]).unwrap().cert_writer, CertWriter::Secret);
        assert_eq!(given(&[("WEBHOOK_HOST", "")]).unwrap().host, None);
    }

    #[test]
    fn no_folder_is_written_unless_one_is_named() {
        assert_eq!(given(&[]).unwrap().cert_dir, None);
        assert_eq!(given(&[("WEBHOOK_HOST", "127.0.0.1")]).unwrap().cert_dir, None);
        let fs = ("WEBHOOK_CERT_WRITER", "fs");
        assert!(given(&[fs]).unwrap_err().to_string().contains("WEBHOOK_CERT_DIR must name a folder"));
        assert_eq!(given(&[fs, ("WEBHOOK_CERT_DIR", "/a")]).unwrap().cert_dir, Some("/a".into()));
    }

    #[test]
    fn wrong_values_name_the_variable_and_what_is_expected() {
        assert_eq!(
            given(&[("WEBHOOK_PORT", "http")]).unwrap_err().to_string(),
            r#"environment variable WEBHOOK_PORT="http": expected a port from 0 to 65535"#
        );
        assert_eq!(
            given(&[("WEBHOOK_CERT_WRITER", "s3")]).unwrap_err().to_string(),
            r#"environment variable WEBHOOK_CERT_WRITER="s3": expected fs or secret"#
        );
    }
}
