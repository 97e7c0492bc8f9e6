//! Controllers for Kubernetes: tasks around watches, caches, work queues and a Lease.
//!
//! A controller is a function from a key and the caches to an [`outcome::Outcome`]. The runtime computes the difference
//! between the desired state and the caches, and writes it. What decides is in [`koord_core`], a crate without I/O; requests
//! are sent by [`koord_client`]; [`manager`] runs tasks around both, and a simulation can drive [`Core`] step by step. The
//! modules of both crates are exported here under their names. None of the three knows Koordinator's kinds.
//!
//! Read first: [`projection::Projection`] (what is kept of an object), [`controller::Controller`] (what is decided),
//! [`Core`] (how both are wired).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod caches;
pub mod changes;
pub mod controller;
mod core;
mod effects;
mod election;
mod failures;
mod follow;
pub mod health;
pub mod manager;
pub mod metrics;
#[cfg(feature = "otlp")]
pub mod otlp;
pub mod tasks;
pub mod trace;
mod undeclared;

// Counters and gauges that a program makes from its own descriptions are types of it.
pub use prometheus;

pub use koord_client::{api, clock, connect, outage, recorder};
pub use koord_core::{
    cache, child, condition, effect, error, events, index, intern, key, lease, list, outcome, ownership, panics, plan,
    projection, queue, random, reflector, refusal, selected, store, uid, watch::Watch, write,
};

pub use crate::{
    caches::Caches,
    core::{Core, Wiring},
};
