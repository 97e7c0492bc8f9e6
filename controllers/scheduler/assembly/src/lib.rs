//! The scheduler put together: every plugin by its name, and the profiles of a configuration.
//!
//! Read first: [`build`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod plugins;

pub use plugins::{
    ArgsError, BuiltProfile, Dependencies, Idle, ProfileError, build, build_with, default_profile, reads,
};
