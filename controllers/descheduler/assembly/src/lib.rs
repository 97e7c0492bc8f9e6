//! The descheduler put together: configuration, plugins by name, profiles.
//!
//! Read first: [`Configuration`] (the file), [`build`] (the profiles), [`snapshot`](fn@snapshot) (what they see of a cluster).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod configuration;
mod foresight;
mod plugins;
mod profiles;
mod snapshot;

pub use self::{
    configuration::Configuration,
    foresight::LiveScheduler,
    plugins::{PluginError, reads},
    profiles::{BuildError, Built, build},
    snapshot::snapshot,
};

/// The field manager of the descheduler's writes, and the name of its default profile.
pub const NAME: &str = "koord-descheduler";
