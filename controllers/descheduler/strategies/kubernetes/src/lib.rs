//! The plugins of kubernetes-sigs/descheduler: DefaultEvictor and the ten strategies, one file each.
//!
//! Read first: [`RemoveFailedPods`] (the smallest strategy), [`DefaultEvictor`] (which pods may be evicted).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod default_evictor;
mod remove_failed_pods;
mod selection;

pub use self::{default_evictor::DefaultEvictor, remove_failed_pods::RemoveFailedPods};

/// Why a plugin cannot be made of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("{field}: {error}")]
    Selector { field: &'static str, error: String },
    /// The metrics that it should go by are not available here.
    #[error("{0}")]
    Unsupported(&'static str),
}
