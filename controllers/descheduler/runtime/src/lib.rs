//! What brings the cluster to the descheduling framework, and carries out what it plans.
//!
//! Caches of nodes, pods and the objects that plugins read become one stream of changes ([`Feed`]), which keeps the framework's snapshot up to date. On the
//! leader a pass is computed at each interval and its steps are sent one by one ([`Worker`], [`install`]); a step that fails changes what follows, and the pod
//! is left alone for a while.
//!
//! Read first: [`Passes`] (when and what), [`Worker`] (the task).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod carry_out;
mod feed;
mod jobs;
mod metrics;
mod migration;
mod passes;
mod refusals;
mod scales;
mod task;
mod view;

pub use self::{
    feed::Feed,
    jobs::{JOBS, install_jobs},
    metrics::{METRICS, Measures},
    migration::{LateRequester, Migration},
    passes::Passes,
    task::{Worker, install},
};
