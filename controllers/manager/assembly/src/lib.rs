//! koord-manager put together: its flags and feature gates, which controllers they let run, what it may do in a cluster, and its admission
//! handlers without a server.
//!
//! The program runs it; other crates ask it what a manager with some flags would do. The crate opens no connections. What the controllers
//! decide is in [`koord_manager_controllers`], what the webhooks answer in [`koord_webhook_handlers`].
//!
//! Read first: [`Options`] (the flags), [`add_controllers`] (what runs), [`reviewer::Reviewer`] (the handlers).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod controllers;
mod gates;
mod identity;
mod metrics;
mod options;
mod permissions;
pub mod reviewer;

pub use controllers::add_controllers;
pub use gates::{GATES, GPU_SHARES};
pub use identity::{BUILD, NAME, NO_AUTHORITY, webhook_defaults};
pub use metrics::metrics;
pub use options::{Checked, Options};
pub use permissions::{optional_controllers, own_rules, rbac_rules};
