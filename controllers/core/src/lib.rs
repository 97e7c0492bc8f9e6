//! The core of a controller, without I/O: caches, the protocol of list and watch, work queues, leader election, plans.
//!
//! Every type here is a value or a state machine. It is given JSON text, the time ([`clock::Moment`]) and randomness
//! ([`random::Random`]), and returns what is to be done: [`reflector::Ask`], [`lease::Step`], [`write::Write`]. Sockets,
//! tasks and timers are in `koord-client` and `koord-runtime`, or in a simulation. The manifest names no crate that has them.
//!
//! Read first: [`projection::Projection`] (what is kept of an object), [`store::Store`] (a shared cache),
//! [`outcome::Outcome`] (the desired state, from which the writes are computed).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod cache;
pub mod child;
pub mod clock;
pub mod condition;
mod digest;
pub mod effect;
pub mod error;
pub mod events;
pub mod index;
pub mod intern;
pub mod key;
pub mod lease;
pub mod list;
pub mod outcome;
pub mod ownership;
pub mod panics;
pub mod plan;
pub mod projection;
pub mod queue;
pub mod random;
pub mod reflector;
pub mod refusal;
pub mod selected;
pub mod store;
pub mod trace_context;
pub mod uid;
pub mod watch;
pub mod write;
