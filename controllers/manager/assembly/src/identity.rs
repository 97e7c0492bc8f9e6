//! Which program this is, to users and to the API server.

use koord_program::Build;
use koord_webhook_server::Defaults;

use crate::{gates::GATES, metrics::BUILD_INFO};

/// The field manager of its writes, and the name of the Lease that its replicas share.
pub const NAME: &str = "koordinator-manager";

/// Which program this is.
pub const BUILD: Build = Build {
    program: "koord-manager",
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: "koordinator-system",
    gates: GATES,
    info: BUILD_INFO,
};

/// The Secret with the certificates of the webhooks.
pub(crate) const CERTIFICATES: &str = "koordinator-webhook-certs";
pub(crate) const MUTATING: &str = "koordinator-mutating-webhook-configuration";
pub(crate) const VALIDATING: &str = "koordinator-validating-webhook-configuration";

/// What stands for a certificate authority until koord-manager fills in its own: a line break, in base64.
pub const NO_AUTHORITY: &str = "Cg==";

/// The names of the webhook server's objects where the environment names no others: the original's.
pub fn webhook_defaults() -> Defaults {
    Defaults {
        namespace: BUILD.namespace.to_owned(),
        secret: CERTIFICATES.to_owned(),
        service: "koordinator-webhook-service".to_owned(),
        mutating: MUTATING.to_owned(),
        validating: VALIDATING.to_owned(),
        // The Services of the original point at it.
        second_port: Some(9876),
    }
}

#[cfg(test)]
mod tests {
    use koord_webhook_server::Environment;

    use super::*;

    #[test]
    fn without_variables_the_webhook_server_has_the_originals_names_and_both_ports() {
        let environment = Environment::of(webhook_defaults(), |_| None).unwrap();
        assert_eq!((environment.port, environment.second_port), (9443, Some(9876)));
        assert_eq!(environment.dns_name(), "koordinator-webhook-service.koordinator-system.svc");
        assert_eq!(environment.secret, "koordinator-webhook-certs");
        assert_eq!(environment.mutating, "koordinator-mutating-webhook-configuration");
        assert_eq!(environment.validating, "koordinator-validating-webhook-configuration");
    }
}
