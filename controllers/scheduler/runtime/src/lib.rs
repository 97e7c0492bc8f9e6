//! What brings the cluster to the scheduling engine, and carries out what it decides.
//!
//! Caches of nodes and pods become one stream of deltas ([`feed`]). A state machine applies them, lets the engine make attempts, and
//! gives the bindings and conditions that follow ([`Scheduler`]); the task of the leader sends them ([`install`]). The crate
//! knows neither which plugins there are, nor flags.
//!
//! Read first: [`Scheduler`] (the state machine), [`feed`] (what it is fed), [`install`] (the task).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agreement;
mod auditor;
mod barrier;
mod controllers;
mod explanations;
mod extender;
pub mod feed;
mod metrics;
mod observer;
mod reader;
mod report;
mod resize;
mod scheduler;
mod task;
mod timeouts;
mod transform;
mod view;

pub use auditor::Limits;
pub use barrier::SyncBarrier;
pub use controllers::Controllers;
pub use explanations::{EXPLANATIONS, explain};
pub use extender::{Webhook, verbs};
pub use metrics::{HookLatency, METRICS, Measures};
pub use reader::{EngineReader, ReadError};
pub use scheduler::{AuditorSettings, Dumps, Next, NumberedCall, Scheduler, Work};
pub use task::install;
pub use timeouts::Monitoring;
pub use transform::Transformers;
