//! The operator: the controller and both webhooks, on one set of caches.

use koord::program::{Build, Result, Setup};
use koord::runtime::metrics::Description;
use koord::webhook::{Service, ServiceBuilder};

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

/// Adds the controller, and returns what answers the reviews of both webhooks.
pub fn add(setup: &mut Setup) -> Result<Service> {
    let core = setup.core();
    core.add(CronJobController::SPEC, NAME, CronJobController::wire)?;
    Ok(ServiceBuilder::of(core)?.handlers(HANDLERS).build())
}
