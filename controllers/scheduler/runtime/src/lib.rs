//! What brings the cluster to the scheduling engine, and carries out what it decides.
//!
//! Caches of nodes and pods become one stream of deltas ([`feed`]); the task of the leader applies them, lets the engine make
//! attempts, and writes bindings, conditions and events ([`Scheduler::install`]).
//!
//! Read first: [`Scheduler`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod feed;
mod report;
mod task;
mod view;

pub use task::Scheduler;
