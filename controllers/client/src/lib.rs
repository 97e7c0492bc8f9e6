//! The way to the API server: requests below a rate limit, watches line by line, events, and the clocks that run.
//!
//! What is sent and what an answer means is decided in [`koord_core`]; this crate sends it, and decides nothing.
//!
//! Read first: [`api::Api`] (how a write is sent), [`recorder::Recorder`] (how events are recorded), [`connect`], [`clock`].
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod api;
pub mod clock;
pub mod connect;
mod limiter;
mod lines;
pub mod metrics;
pub mod outage;
pub mod recorder;
