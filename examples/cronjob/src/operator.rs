//! The running operator: the controller and both webhooks, on one set of caches.

use std::{env, sync::Arc};

use koord::program::{Build, ControllerSettings, Dependencies, Program, Result, Setup};
use koord::runtime::{Core, clock::SystemClock, metrics::Description};
use koord::tokio_util::sync::CancellationToken;
use koord::webhook::{self, Defaults, Environment, Server, Service, ServiceBuilder};

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
    let counters = webhook::Metrics::register(core.metrics())?;
    let mut service = ServiceBuilder::new(counters, Arc::clone(core.clock()));
    for handler in HANDLERS {
        service = service.handler(handler, || &());
    }
    Ok(service.build())
}

/// Runs until `stop`; without webhooks where `ENABLE_WEBHOOKS` is `false`.
pub async fn run(settings: ControllerSettings, stop: CancellationToken) -> Result<()> {
    let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
    let mut program = Program::new(BUILD, settings, dependencies, &stop)?;
    add(&mut program)?;
    if env::var("ENABLE_WEBHOOKS").is_ok_and(|enabled| enabled == "false") {
        return Ok(program.manager().run(stop).await?);
    }
    let environment = Environment::read(Defaults::of(NAME, NAMESPACE))?;
    let server = Server::open(environment, service(program.core())?, SystemClock::shared())?;
    server.watch(program.core());
    let mut manager = program.manager();
    server.run_in(&mut manager)?;
    Ok(manager.run(stop).await?)
}
