//! The running operator: the controller and both webhooks, on one set of caches.

use koord::program::{Build, ControllerSettings, Program, Result, Setup};
use koord::runtime::{Core, metrics::Description};
use koord::tokio_util::sync::CancellationToken;
use koord::webhook::{Defaults, Server, Service, ServiceBuilder};

use crate::{HANDLERS, NAME, NAMESPACE, controller::CronJobController};

/// Which program this is.
pub const BUILD: Build = Build {
    program: NAME,
    version: env!("CARGO_PKG_VERSION"),
    field_manager: NAME,
    namespace: NAMESPACE,
    gates: &[],
    info: Description::gauge("cronjob_build_info", &["version", "language"], "Always 1; the labels show the version."),
};

/// Adds the controller to what runs or plans it.
pub fn add(setup: &mut Setup) -> Result<()> {
    setup.core().add(CronJobController::SPEC, NAME, CronJobController::wire)?;
    Ok(())
}

/// What answers the reviews of both webhooks.
pub fn service(core: &Core) -> Result<Service> {
    Ok(ServiceBuilder::of(core)?.handlers(HANDLERS).build())
}

/// Runs until `stop`; without webhooks where `ENABLE_WEBHOOKS` is `false`.
pub async fn run(settings: ControllerSettings, stop: CancellationToken) -> Result<()> {
    let mut program = Program::of_process(BUILD, settings, &stop).await?;
    add(&mut program)?;
    let service = service(program.core())?;
    let server = Server::of_process(program.core(), Defaults::of(NAME, NAMESPACE), service)?;
    let mut manager = program.manager();
    if let Some(server) = server {
        server.run_in(&mut manager)?;
    }
    Ok(manager.run(stop).await?)
}
