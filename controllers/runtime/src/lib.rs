//! koord-runtime: watches, caches, work queues and controllers.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cache;
pub mod clock;
pub mod index;
pub mod intern;
pub mod key;
pub mod projection;
pub mod queue;
pub mod random;
pub mod reflector;
pub mod store;
