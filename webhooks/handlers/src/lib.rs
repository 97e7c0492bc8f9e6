//! Koordinator's admission handlers: one file per path, each a pure function of a request and what the caches show.
//!
//! It knows no sockets and writes nothing. Read first: [`Ctx`] (what handlers see), [`mutate_pod`] (the most frequent
//! one), [`HANDLERS`] (the table that the program serves).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod ctx;
pub mod declared;
mod decode;
mod entries;
mod follow;
mod gated;
mod metrics;
pub mod mutate_elastic_quota;
pub mod mutate_node_status;
pub mod mutate_pod;
pub mod mutate_reservation;
mod pod;
mod profile;
mod quota;
mod settings;
mod slo_config;
pub mod validate_configmap;
pub mod validate_elastic_quota;
pub mod validate_node;
pub mod validate_pod;
pub mod validate_pod_binding;
mod warnings;

use std::sync::Arc;

pub use ctx::{Ctx, Switches};
use koord_resource::admission::Handler;
use koord_webhook::ServiceBuilder;
pub use metrics::METRICS;
pub use quota::{Accounts, Books, Retries};
pub use settings::{BindingPolicy, ObjectName, Settings};

/// Every handler, in the order of the paths in the webhook configurations.
pub static HANDLERS: [Handler<Ctx>; 14] = [
    mutate_pod::HANDLER,
    mutate_elastic_quota::HANDLER,
    mutate_node_status::HANDLER,
    mutate_reservation::HANDLER,
    validate_pod::HANDLER,
    validate_configmap::HANDLER,
    validate_elastic_quota::HANDLER,
    validate_node::HANDLER,
    validate_pod_binding::HANDLER,
    declared::VALIDATE_RESERVATION,
    declared::MUTATE_POD_MIGRATION_JOB,
    declared::VALIDATE_POD_MIGRATION_JOB,
    declared::VALIDATE_NODE_SLO,
    declared::VALIDATE_DEVICE,
];

/// Serves every handler whose gate is on.
pub fn serve(mut builder: ServiceBuilder, ctx: &Arc<Ctx>, gate: impl Fn(&str) -> bool) -> ServiceBuilder {
    for handler in &HANDLERS {
        if handler.gate.is_none_or(&gate) {
            let ctx = Arc::clone(ctx);
            builder = builder.handler(handler, move || Arc::clone(&ctx));
        }
    }
    let debugged = Arc::clone(ctx);
    let ctx = Arc::clone(ctx);
    builder.page("/elasticQuota", move |_| quota::debug_page(&debugged)).wait_for(move || ctx.synced())
}
