//! The runtime as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod manager;
mod sources;
