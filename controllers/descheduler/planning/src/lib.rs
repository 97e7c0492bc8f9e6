//! What the evictions of a pass lead to: each is followed through the scheduler before anything is done.
//!
//! The pod is taken away, its successor is scheduled by the engine of koord-scheduler with the cluster's own configuration, and the next eviction sees the
//! result. An eviction whose successor would come back, stay pending or break a PodDisruptionBudget is not worth it, and says so.
//!
//! Read first: [`follow`] (a plan with what becomes of it), [`Rehearsal`] (one eviction).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod budgets;
mod followed;
mod rehearsal;

pub use self::{
    followed::{Followed, Objection, follow},
    rehearsal::{Rehearsal, Successor},
};
