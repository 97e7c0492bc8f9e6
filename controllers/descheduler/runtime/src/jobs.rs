//! The controller of PodMigrationJobs in the program.

use std::sync::Arc;

use koord_config::descheduler::MigrationControllerArgs;
use koord_descheduler_migration::controller::{COMPONENT, JobController};
use koord_resource::controller::ControllerSpec;
use koord_runtime::{Core, prometheus};

use crate::{
    metrics::Measures,
    migration::{LateRequester, Migration},
    passes::Passes,
    view::PodView,
};

/// The controller of PodMigrationJobs: what it watches, and may do.
pub const JOBS: ControllerSpec = JobController::<PodView>::SPEC;

/// Adds the controller that brings PodMigrationJobs to their end. `drops_claims` says that Reservations are made without PersistentVolumeClaims.
///
/// # Errors
///
/// A metric cannot be registered.
pub fn install_jobs(
    core: &mut Core,
    (args, drops_claims): (&MigrationControllerArgs, bool),
    (migration, passes): (&Migration, &Passes),
    requester: &LateRequester,
    measures: &Measures,
) -> Result<(), prometheus::Error> {
    let limits = migration.limits(Arc::clone(&passes.cluster));
    let (requester, evicted) = (Arc::new(requester.clone()), measures.evictions.clone());
    core.add(JOBS, COMPONENT, |wiring| {
        JobController::<PodView>::wire(wiring, args, drops_claims, requester, evicted, limits)
    })?;
    Ok(())
}
