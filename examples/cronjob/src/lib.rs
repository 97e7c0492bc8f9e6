//! The operator of kubebuilder's CronJob tutorial, whole: type, webhooks, controller and program.
//!
//! It depends on the facade `koord` and on a parser of cron expressions, and knows no other crate of the library. `README.md` compares
//! it with kubebuilder's and with the same on kube-rs.
//!
//! Read first: [`api::CronJob`] (the kind), [`controller::CronJobController`] (what is decided), [`operator`] (the wiring).

pub mod api;
pub mod controller;
pub mod operator;
pub mod runs;
pub mod schedule;

use koord::document::{Declared, Installation, Webhooks, install};
use koord::{admission::Handler, controller::ControllerSpec, controllers, handlers, serde_json::Value};

use crate::{api::CronJob, controller::CronJobController};

/// The kind.
pub const CRON_JOB: &[Declared] = &[Declared::of::<CronJob>()];

/// What the webhook server serves.
pub const HANDLERS: &[Handler<()>] = handlers![CronJob::mutating_handler(), CronJob::validating_handler()];

/// What the manager runs.
pub const CONTROLLERS: &[ControllerSpec] = controllers![CronJobController];

/// The namespace that the operator is installed in.
pub const NAMESPACE: &str = "cronjob-system";

/// The name of the operator, its Service and its webhook configurations.
pub const NAME: &str = "cronjob";

/// Everything that is applied to a cluster.
pub fn manifests() -> Vec<Value> {
    install(&Installation {
        kinds: &[CRON_JOB],
        controllers: CONTROLLERS,
        webhooks: Some(Webhooks::of(NAME, NAMESPACE, HANDLERS)),
        ..Installation::new(NAME, NAMESPACE, concat!("cronjob:v", env!("CARGO_PKG_VERSION")))
    })
}
