//! The running operator: one controller, both webhooks and the conversion, on one set of caches.

use std::sync::Arc;

use koord::{
    program::{Build, ControllerSettings, Dependencies, Program, Setup},
    runtime::{clock::SystemClock, metrics::Description},
    tokio_util::sync::CancellationToken,
    webhook::{self, Server, ServiceBuilder},
};

use crate::{
    CERTIFICATES, CONVERSIONS, HANDLERS, NAME, NAMESPACE, backups::BackupStore, controller::DatabaseController,
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

/// The webhook server's settings: the process's environment, and the names in [`manifests`](crate::manifests).
pub fn environment() -> Result<webhook::Environment, webhook::EnvironmentError> {
    webhook::Environment::from(|variable| {
        std::env::var(variable).ok().filter(|value| !value.is_empty()).or_else(|| own(variable).map(ToOwned::to_owned))
    })
}

/// The values of variables that are not set.
fn own(variable: &str) -> Option<&'static str> {
    match variable {
        "POD_NAMESPACE" => Some(NAMESPACE),
        "SERVICE_NAME" | "MUTATING_WEBHOOK_NAME" | "VALIDATING_WEBHOOK_NAME" => Some(NAME),
        "SECRET_NAME" => Some(CERTIFICATES),
        "WEBHOOK_PORT" => Some("9443"),
        _ => None,
    }
}

/// The store that the variable `BACKUP_STORE` names by its URL; none when it is not set.
pub fn backups() -> koord::program::Result<Option<BackupStore>> {
    let url = std::env::var("BACKUP_STORE").ok().filter(|url| !url.is_empty());
    url.map(|url| BackupStore::at(&url).map_err(koord::program::Error::msg)).transpose()
}

/// Adds the controllers, to run them or to plan what they would write.
pub fn add_controllers(setup: &mut Setup, backups: Option<BackupStore>) -> koord::program::Result<()> {
    setup.core().add(DatabaseController::SPEC, NAME, |wiring| DatabaseController::wire(wiring, backups))?;
    Ok(())
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

    let counters = webhook::Metrics::register(program.metrics())?;
    let clock = SystemClock::shared();
    let mut service = ServiceBuilder::new(counters, Arc::clone(&clock)).conversions(CONVERSIONS);
    for handler in HANDLERS {
        service = service.handler(handler, || &());
    }
    let server = Server::open(environment, service.build(), clock)?;
    server.watch(program.core());

    let mut manager = program.manager();
    server.run_in(&mut manager)?;
    Ok(manager.run(stop).await?)
}
