//! koord-runtime: watches, caches, work queues and controllers.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod cache;
pub mod clock;
pub mod controller;
mod core;
mod election;
pub mod error;
pub mod events;
mod follow;
pub mod health;
pub mod index;
pub mod intern;
pub mod key;
pub mod lease;
pub mod manager;
pub mod metrics;
pub mod outcome;
pub mod patch;
pub mod projection;
pub mod queue;
pub mod random;
pub mod recorder;
pub mod reflector;
pub mod store;
pub mod write;

pub use crate::core::{Core, Watch, Wiring};
