//! Objects as they occur: samples, recordings, and what our own functions make.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod definitions;
mod keys;
mod kinds;
mod recordings;
mod rules;
mod samples;
