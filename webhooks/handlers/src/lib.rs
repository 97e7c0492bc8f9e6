//! Koordinator's admission handlers: pure functions of a request and what the caches show.
//!
//! Kinds whose objects are all that a decision needs have derived handlers, and their rules stand in `koord-types`. The
//! others lie here by domain ([`pod`], [`quota`], [`node`], [`config`], [`reservation`]), one file per path. Each domain
//! sees a view of its own caches, not the whole [`Ctx`].
//!
//! It knows no sockets and writes nothing but the usage of quotas ([`QuotaEvaluator`]). Read first: [`pod::mutate`] (the most
//! frequent handler), [`Ctx`] (all caches), [`HANDLERS`] (the table that the program serves).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod config;
mod ctx;
mod decode;
mod follow;
mod ignored_keys;
mod metrics;
pub mod node;
pub mod pod;
mod priority_class;
mod profile;
pub mod quota;
mod quota_evaluator;
pub mod reservation;
mod resources;
mod settings;
mod slo_config;
mod switches;

use std::sync::Arc;

pub use ctx::Ctx;
use koord_resource::{admission::Handler, handlers};
use koord_types::{device::Device, node_slo::NodeSLO, pod_migration_job::PodMigrationJob, reservation::Reservation};
use koord_webhook_server::ServiceBuilder;
pub use metrics::METRICS;
pub use quota_evaluator::{QuotaAccessor, QuotaEvaluator, Retries};
pub use settings::{BindingPolicy, DECLARED_WEBHOOKS, Declared, ObjectName, Settings};
pub use switches::Switches;

/// Every handler, in the order of the paths in the webhook configurations.
pub static HANDLERS: &[Handler<Ctx>] = handlers![
    pod::mutate::mutate_pod,
    quota::mutate::mutate_elastic_quota,
    node::mutate_status::mutate_node_status,
    reservation::mutate::mutate_reservation,
    pod::validate::validate_pod,
    config::validate::validate_configmap,
    quota::validate::validate_elastic_quota,
    node::validate::validate_node,
    pod::validate_binding::validate_pod_binding,
    Reservation::validating_handler(),
    PodMigrationJob::mutating_handler(),
    PodMigrationJob::validating_handler(),
    NodeSLO::validating_handler(),
    Device::validating_handler(),
];

/// Paths that are answered without a gate of theirs and decide nothing then, each with the gate: neither the chart nor the program lists them in
/// webhook configurations.
pub const IDLE_WITHOUT: [(&str, &str); 1] = [("/validate-pod-binding", "BindingAdmissionWebhook")];

/// Serves every handler whose gate is on, and those that are derived from types as the settings say.
pub fn serve(mut builder: ServiceBuilder, ctx: &Arc<Ctx>, gate: impl Fn(&str) -> bool) -> ServiceBuilder {
    for handler in HANDLERS {
        let snapshot = {
            let ctx = Arc::clone(ctx);
            move || Arc::clone(&ctx)
        };
        let is_derived = handler.gate == Some(DECLARED_WEBHOOKS);
        builder = match ctx.settings.declared {
            Declared::Off if is_derived => builder,
            Declared::Warn if is_derived => builder.advisory(handler, snapshot),
            _ if is_derived || handler.gate.is_none_or(&gate) => builder.handler(handler, snapshot),
            _ => builder,
        };
    }
    for (path, needed) in IDLE_WITHOUT {
        if !gate(needed) {
            builder = builder.unlisted(path);
        }
    }
    let debugged = Arc::clone(ctx);
    let ctx = Arc::clone(ctx);
    builder.page("/elasticQuota", move |_| quota::debug_page(debugged.quotas())).wait_for(move || ctx.synced())
}
