//! Controllers for Kubernetes: watches, caches, work queues, leases, and a manager around them.
//!
//! A controller is a function from a key and what the caches show to an [`outcome::Outcome`]; the runtime computes
//! the difference to what is and writes that. Everything that decides is a state machine without sockets, tasks or a
//! clock of its own ([`cache`], [`reflector`], [`queue`], [`lease`], [`outcome`]); [`manager`] puts tasks around
//! them, and a simulation can drive them step by step. The crate knows nothing of Koordinator.
//!
//! Read first: [`projection::Projection`] (what is kept of an object), [`controller::Controller`] (what is decided),
//! [`Core`] (how both are wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod cache;
pub mod changes;
pub mod clock;
pub mod condition;
pub mod controller;
mod core;
mod election;
pub mod error;
pub mod events;
pub mod flags;
mod follow;
pub mod gates;
pub mod health;
pub mod index;
pub mod intern;
pub mod key;
pub mod lease;
mod limiter;
mod lines;
pub mod logs;
pub mod manager;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod outcome;
pub mod ownership;
pub mod panics;
pub mod patch;
pub mod plan;
pub mod projection;
pub mod queue;
pub mod random;
pub mod recorder;
pub mod reflector;
pub mod store;
pub mod tasks;
pub mod trace;
pub mod uid;
mod watch;
pub mod write;

pub use crate::{
    core::{Core, Wiring},
    watch::Watch,
};
