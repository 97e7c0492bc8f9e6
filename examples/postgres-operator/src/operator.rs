//! The running operator: one controller, both webhooks and the conversion, on one set of caches.

use std::sync::Arc;

use koord::{
    document::{Installation, Webhooks, install},
    program::{Build, ControllerSettings, Dependencies, Program, Setup, permissions},
    runtime::{Core, clock::SystemClock, metrics::Description},
    serde_json::Value,
    tokio_util::sync::CancellationToken,
    webhook::{self, Server, Service, ServiceBuilder},
};

use crate::{
    CERTIFICATES, CONTROLLERS, CONVERSIONS, DATABASE, HANDLERS, NAME, NAMESPACE, backups::BackupStore,
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
    let mut rules = permissions(CONTROLLERS);
    rules.extend(webhook::rbac(&[CERTIFICATES], &[NAME], &[NAME]));
    rules.push(webhook::CONVERSION_RBAC);
    Installation {
        kinds: &[DATABASE],
        rules,
        webhooks: Some(Webhooks { conversions: CONVERSIONS, ..Webhooks::of(NAME, NAMESPACE, HANDLERS) }),
        ..Installation::new(NAME, NAMESPACE, &format!("{NAME}:v{}", BUILD.version))
    }
}

/// Everything that is applied to a cluster.
pub fn manifests() -> Vec<Value> {
    install(&installation())
}

/// The store that the variable `BACKUP_STORE` names by its URL; none when it is not set.
pub fn backups() -> koord::program::Result<Option<BackupStore>> {
    let url = std::env::var("BACKUP_STORE").ok().filter(|url| !url.is_empty());
    url.map(|url| BackupStore::at(&url).map_err(koord::program::Error::msg)).transpose()
}

/// Adds the controllers to a program that runs them or plans what they would write, and to that of a test.
pub fn add_controllers(setup: &mut Setup, backups: Option<BackupStore>) -> koord::program::Result<()> {
    setup.core().add(DatabaseController::SPEC, NAME, |wiring| DatabaseController::wire(wiring, backups))?;
    Ok(())
}

/// What answers the reviews of both webhooks and those of conversions.
pub fn service(core: &Core) -> koord::program::Result<Service> {
    let counters = webhook::Metrics::register(core.metrics())?;
    let mut service = ServiceBuilder::new(counters, Arc::clone(core.clock())).conversions(CONVERSIONS);
    for handler in HANDLERS {
        service = service.handler(handler, || &());
    }
    Ok(service.build())
}

/// Runs until `stop`.
pub async fn run(
    settings: ControllerSettings,
    dependencies: Dependencies,
    environment: webhook::Environment,
    backups: Option<BackupStore>,
    stop: CancellationToken,
) -> koord::program::Result<()> {
    let mut program = Program::new(BUILD, settings, dependencies, &stop)?;
    add_controllers(&mut program, backups)?;

    let server = Server::open(environment, service(program.core())?, SystemClock::shared())?;
    server.watch(program.core());

    let mut manager = program.manager();
    server.run_in(&mut manager)?;
    Ok(manager.run(stop).await?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use koord::webhook::{Defaults, Environment};

    use super::*;

    #[test]
    fn the_deployment_names_the_objects_that_the_program_and_its_permissions_name() {
        let environment = Environment::of(Defaults::of(NAME, NAMESPACE), |_| None).unwrap();
        assert_eq!(environment.secret, CERTIFICATES);
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
