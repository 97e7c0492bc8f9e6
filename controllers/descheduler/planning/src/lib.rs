//! What the evictions of a pass lead to: each is followed through the scheduler before anything is done.
//!
//! The pod is taken away, its successor is scheduled by the engine of koord-scheduler with the cluster's own configuration, and the next eviction sees the
//! result. An eviction whose successor would come back, stay pending, be evicted again, or break a PodDisruptionBudget is not worth it, nor is that of a pod
//! which has replaced one that was evicted for the same reason not long ago.
//!
//! Read first: [`plan`] (a pass with what becomes of it), [`Foresight`] (what that takes).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod again;
mod budgets;
mod document;
mod judgement;
mod plan;
mod rehearsal;

pub use self::{
    again::EvictedAgain,
    document::{document, eviction_document},
    plan::{Foresight, plan},
};
