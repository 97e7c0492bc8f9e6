//! The reconciler on a kernel of values, with the numbers that were recorded.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod cpus;
mod fixture;
mod identities;
mod processes;
mod quotas;
