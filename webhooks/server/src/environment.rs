//! The settings of the server, as environment variables give them, and what holds where they say nothing.

use std::{
    env,
    net::{IpAddr, Ipv6Addr},
    path::PathBuf,
};

/// The port when none is set.
pub const DEFAULT_PORT: u16 = 9443;

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

/// What holds where a variable is not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// See [`Environment::namespace`].
    pub namespace: String,
    /// See [`Environment::secret`].
    pub secret: String,
    /// See [`Environment::service`].
    pub service: String,
    /// See [`Environment::mutating`].
    pub mutating: String,
    /// See [`Environment::validating`].
    pub validating: String,
    /// The port that is served beside [`DEFAULT_PORT`], if it is free.
    pub second_port: Option<u16>,
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

// === impl Defaults ===

impl Defaults {
    /// Those of a program of this name in this namespace: the names that
    /// [`Webhooks::of`](koord_resource::document::Webhooks::of) gives the objects of its installation.
    pub fn of(program: &str, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            secret: format!("{program}-certs"),
            service: program.to_owned(),
            mutating: program.to_owned(),
            validating: program.to_owned(),
            second_port: None,
        }
    }
}

// === impl Environment ===

impl Environment {
    /// The variables that are read, with what each says.
    pub const VARIABLES: &'static [(&'static str, &'static str)] = &[
        ("ENABLE_WEBHOOKS", "false: serve no webhooks, as where no API server reaches the program"),
        (
            "WEBHOOK_HOST",
            "the name or address by which API servers call the program, instead of its Service; one of the loopback for a program outside of the cluster",
        ),
        ("WEBHOOK_PORT", "the port of the webhooks (9443)"),
        (
            "WEBHOOK_CERT_DIR",
            "the folder of certificates; without one they are in the Secret alone, or with WEBHOOK_HOST in memory",
        ),
        ("WEBHOOK_CERT_WRITER", "where certificates are stored: secret, or fs with WEBHOOK_CERT_DIR"),
        ("POD_NAMESPACE", "the namespace of Service and Secret"),
        ("SERVICE_NAME", "the Service that API servers call"),
        ("SECRET_NAME", "the Secret with the certificates"),
        ("MUTATING_WEBHOOK_NAME", "the MutatingWebhookConfiguration that is kept right"),
        ("VALIDATING_WEBHOOK_NAME", "the ValidatingWebhookConfiguration that is kept right"),
    ];

    /// The settings of this process.
    pub fn read(defaults: Defaults) -> Result<Self, EnvironmentError> {
        Self::of(defaults, |name| env::var(name).ok())
    }

    /// The settings that `variable` gives. An empty variable counts as unset.
    pub fn of(defaults: Defaults, variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let or = |name: &str, default: String| set(name).unwrap_or(default);
        let wrong = |name, value, wanted| EnvironmentError { name, value, wanted };
        let (port, second_port) = match set("WEBHOOK_PORT") {
            None => (DEFAULT_PORT, defaults.second_port),
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
            namespace: or("POD_NAMESPACE", defaults.namespace),
            secret: or("SECRET_NAME", defaults.secret),
            service: or("SERVICE_NAME", defaults.service),
            mutating: or("MUTATING_WEBHOOK_NAME", defaults.mutating),
            validating: or("VALIDATING_WEBHOOK_NAME", defaults.validating),
        })
    }

    /// Whether webhooks are served: where `ENABLE_WEBHOOKS` is not `false`.
    pub(crate) fn enables(variable: impl Fn(&str) -> Option<String>) -> bool {
        variable("ENABLE_WEBHOOKS").is_none_or(|value| value != "false")
    }

    /// The name that certificates are made for.
    pub fn dns_name(&self) -> String {
        self.host.clone().unwrap_or_else(|| format!("{}.{}.svc", self.service, self.namespace))
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::document::Webhooks;

    use super::*;

    fn given(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        let of = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment::of(Defaults { second_port: Some(9876), ..Defaults::of("waiter", "restaurant") }, of)
    }

    #[test]
    fn what_no_variable_names_has_the_names_of_an_installation() {
        let installed = Webhooks::of::<()>("waiter", "restaurant", &[]);
        let unset = Environment::of(Defaults::of("waiter", "restaurant"), |_| None).unwrap();
        let variable = |name: &str| {
            let set = installed.variables().into_iter().find(|(known, _)| *known == name);
            set.map(|(_, value)| value.to_owned())
        };
        let set = Environment::of(Defaults::of("other", "restaurant"), variable).unwrap();
        assert_eq!(unset, set, "the variables of the Deployment say the same");
        assert_eq!((&unset.service, unset.port), (&installed.service, installed.port));
        assert_eq!(unset.dns_name(), "waiter.restaurant.svc");
        assert_eq!(unset.second_port, None);
    }

    #[test]
    fn a_variable_that_is_set_names_its_object_and_an_empty_one_does_not() {
        let environment = given(&[("SECRET_NAME", "own"), ("SERVICE_NAME", "")]).unwrap();
        assert_eq!((&*environment.secret, &*environment.service), ("own", "waiter"));
    }

    #[test]
    fn webhooks_are_served_unless_the_variable_is_false() {
        let enabled = |value: Option<&str>| {
            Environment::enables(|name| value.filter(|_| name == "ENABLE_WEBHOOKS").map(str::to_owned))
        };
        assert_eq!([None, Some(""), Some("true"), Some("false")].map(enabled), [true, true, true, false]);
    }

    #[test]
    fn every_variable_that_is_read_is_described() {
        let read = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let variable = |name: &str| {
            read.borrow_mut().insert(name.to_owned());
            None
        };
        Environment::of(Defaults::of("waiter", "restaurant"), variable).unwrap();
        Environment::enables(variable);
        let described = Environment::VARIABLES.iter().map(|(name, _)| (*name).to_owned());
        assert_eq!(read.into_inner(), described.collect());
    }

    #[test]
    fn a_port_that_is_set_is_the_only_one() {
        let ports = |environment: Environment| (environment.port, environment.second_port);
        assert_eq!(ports(given(&[]).unwrap()), (9443, Some(9876)));
        assert_eq!(ports(given(&[("WEBHOOK_PORT", "10250")]).unwrap()), (10250, None));
    }

    #[test]
    fn a_host_means_certificates_in_the_folder_unless_the_writer_is_named() {
        let host = ("WEBHOOK_HOST", "127.0.0.1");
        assert_eq!(given(&[]).unwrap().cert_writer, CertWriter::Secret);
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
