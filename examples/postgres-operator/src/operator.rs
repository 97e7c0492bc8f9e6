//! The running operator: one controller, both webhooks and the conversion, on one set of caches.

use koord::{
    document::{ConfigurationFile, Installation, Webhooks, install},
    program::{Build, Setup},
    runtime::metrics::Description,
    serde_json::Value,
    webhook::{Service, ServiceBuilder},
};

use crate::{
    CONTROLLERS, CONVERSIONS, DATABASE, HANDLERS, NAME, NAMESPACE, backups::BackupStore, configuration,
    controller::DatabaseController,
};

/// Which program this is.
pub const BUILD: Build = Build {
    program: NAME,
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: NAMESPACE,
    gates: &[],
    info: Description::gauge(
        "postgres_operator_build_info",
        &["version", "language"],
        "Always 1; the labels show the version.",
    ),
};

/// What an installation consists of.
pub fn installation() -> Installation {
    Installation {
        kinds: &[DATABASE],
        controllers: CONTROLLERS,
        configuration: Some(ConfigurationFile::of(NAME, configuration::INSTALLED)),
        webhooks: Some(Webhooks { conversions: CONVERSIONS, ..Webhooks::of(NAME, NAMESPACE, HANDLERS) }),
        ..Installation::new(NAME, NAMESPACE, &format!("{NAME}:v{}", BUILD.version))
    }
}

/// Everything that is applied to a cluster.
pub fn manifests() -> Vec<Value> {
    install(&installation())
}

/// Adds the controllers to a program that runs them or plans what they would write, and to that of a test. Returns what answers the
/// reviews of both webhooks and those of conversions.
pub fn add(setup: &mut Setup, backups: Option<BackupStore>) -> koord::program::Result<Service> {
    let core = setup.core();
    core.add(DatabaseController::SPEC, NAME, |wiring| DatabaseController::wire(wiring, backups))?;
    Ok(ServiceBuilder::of(core)?.handlers(HANDLERS).conversions(CONVERSIONS).build())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use koord::{
        configuration::Source,
        webhook::{Defaults, Environment},
    };

    use super::*;
    use crate::configuration::OperatorConfiguration;

    #[test]
    fn the_installed_configuration_is_one_that_the_program_takes() {
        let file = installation().configuration.unwrap();
        let configuration: OperatorConfiguration = Source::new(&file.key, &file.text).read().unwrap();
        assert_eq!(configuration, OperatorConfiguration::default());
    }

    #[test]
    fn the_deployment_names_the_objects_that_the_program_names() {
        let environment = Environment::of(Defaults::of(NAME, NAMESPACE), |_| None).unwrap();
        let manifests = manifests();
        let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").unwrap();
        let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
        for (name, value) in [
            ("SERVICE_NAME", environment.service),
            ("SECRET_NAME", environment.secret),
            ("MUTATING_WEBHOOK_NAME", environment.mutating),
            ("VALIDATING_WEBHOOK_NAME", environment.validating),
            ("WEBHOOK_PORT", environment.port.to_string()),
        ] {
            let variable = variables.iter().find(|variable| variable["name"] == name).unwrap();
            assert_eq!(variable["value"], value, "{name}");
        }
    }
}
