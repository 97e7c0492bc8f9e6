//! Rules of the crate against recordings of a real API server, and as properties of generated objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod asked;
mod definitions;
mod openapi;
mod owners;
mod ownership;
mod patches;
mod properties;

mod recordings;
mod rules;
