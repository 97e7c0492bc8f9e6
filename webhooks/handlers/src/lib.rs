//! Koordinator's admission handlers: pure functions of a request and what the caches show.
//!
//! Kinds whose objects are all that a decision needs have derived handlers, and their rules stand in `koord-api`. The
//! others have one file per path here.
//!
//! It knows no sockets and writes nothing. Read first: [`Ctx`] (what handlers see), [`mutate_pod`] (the most frequent
//! one), [`HANDLERS`] (the table that the program serves).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod config;
mod ctx;
mod decode;
mod follow;
mod metrics;
pub mod mutate_elastic_quota;
pub mod mutate_pod;
pub mod node;
pub mod pod;
mod profile;
mod quota;
pub mod reservation;
mod settings;
mod slo_config;
pub mod validate_elastic_quota;
pub mod validate_pod;
mod warnings;

use std::sync::Arc;

pub use ctx::{Ctx, Switches};
use koord_api::{device::Device, node_slo::NodeSLO, pod_migration_job::PodMigrationJob, reservation::Reservation};
use koord_resource::{admission::Handler, handlers};
use koord_webhook::ServiceBuilder;
pub use metrics::METRICS;
pub use quota::{Accounts, Books, Retries};
pub use settings::{BindingPolicy, ObjectName, Settings};

/// Every handler, in the order of the paths in the webhook configurations.
pub static HANDLERS: &[Handler<Ctx>] = handlers![
    mutate_pod::mutate_pod,
    mutate_elastic_quota::mutate_elastic_quota,
    node::mutate_status::mutate_node_status,
    reservation::mutate::mutate_reservation,
    validate_pod::validate_pod,
    config::validate::validate_configmap,
    validate_elastic_quota::validate_elastic_quota,
    node::validate::validate_node,
    pod::validate_binding::validate_pod_binding,
    Reservation::validating_handler(),
    PodMigrationJob::mutating_handler(),
    PodMigrationJob::validating_handler(),
    NodeSLO::validating_handler(),
    Device::validating_handler(),
];

/// Serves every handler whose gate is on.
pub fn serve(mut builder: ServiceBuilder, ctx: &Arc<Ctx>, gate: impl Fn(&str) -> bool) -> ServiceBuilder {
    for handler in HANDLERS {
        if handler.gate.is_none_or(&gate) {
            let ctx = Arc::clone(ctx);
            builder = builder.handler(handler, move || Arc::clone(&ctx));
        }
    }
    let debugged = Arc::clone(ctx);
    let ctx = Arc::clone(ctx);
    builder.page("/elasticQuota", move |_| quota::debug_page(&debugged)).wait_for(move || ctx.synced())
}
