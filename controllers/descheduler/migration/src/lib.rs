//! Migration of pods by PodMigrationJobs: the plugin MigrationController, arbitration, and the state machine of a job.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod arbitration;
mod args_error;
pub mod controller;
mod filter;
pub mod job;
pub mod jobs;
pub mod limiter;
mod limits;
mod plugin;
pub mod reservation;
pub mod scavenger;
pub mod workloads;

pub use self::{args_error::ArgsError, jobs::MigrationJob, limiter::ObjectLimiters, plugin::MigrationController};
