//! The scheduler put together: configuration, feature gates, plugins by name, profiles, and an engine with the objects of a cluster.
//!
//! Read first: [`Configuration`] (the file), [`build`] (a profile), [`snapshot`](fn@snapshot) (an engine that knows a cluster).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod configuration;
mod engine;
mod extenders;
pub mod gates;
mod plugins;
mod snapshot;

pub use configuration::{Configuration, SHIPPED};
pub use engine::{engine, extended_profiles, profiles, timings};
pub use extenders::webhooks;
pub use gates::{GATES, transformers};
pub use plugins::{
    ArgsError, BuiltProfile, Dependencies, Idle, ProfileError, build, build_with, default_profile, read_rules, reads,
};
pub use snapshot::{amend, objects, snapshot};

/// The field manager of the scheduler's writes, and the name of its default profile.
pub const NAME: &str = "koord-scheduler";
