//! How what koord-manager writes comes about, and why a change of a quota would be refused: `koordctl explain`.
//!
//! The numbers come from the manager's own functions and the refusals from its handlers, fed with objects of a cluster or of files.
//!
//! Read first: [`amounts`] (batch and mid resources), [`slo`] (NodeSLOs), [`quota`] (quotas), [`node`] (devices and CPUs, of
//! [`allocations`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod allocations;
pub mod amounts;
pub mod node;
mod objects;
mod options;
pub mod quota;
pub mod slo;

pub use options::{AllocationOptions, NodeOptions, QuotaOptions};
