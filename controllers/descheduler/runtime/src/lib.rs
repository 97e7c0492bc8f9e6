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
mod history;
mod jobs;
mod metrics;
mod migration;
mod own_events;
mod passes;
mod planner;
mod reconfigure;
mod refusals;
mod scales;
mod task;
mod usage;
mod view;

pub use self::{
    carry_out::write,
    feed::Feed,
    history::{HISTORY, HISTORY_KEY, history_of},
    jobs::{JOBS, install_jobs},
    metrics::{COMMUNITY_METRICS, METRICS, Measures},
    migration::{LateRequester, Migration},
    own_events::OwnEvents,
    passes::Passes,
    planner::Planner,
    reconfigure::{Behaviour, ConfigurationChange, ConfigurationChanges, Reconfiguration},
    task::{Worker, install},
    usage::measure,
};
