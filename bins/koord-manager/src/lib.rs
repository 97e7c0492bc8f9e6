//! koord-manager as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Flags and wiring. What its controllers decide is in [`koord_manager_controllers`], what its webhooks answer in
//! [`koord_webhooks`].
//!
//! Read first: [`Options`] (the flags), [`run_with`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod gates;
mod identity;
mod metrics;
mod options;
mod permissions;
mod run;

pub use gates::GATES;
pub use identity::{BUILD, NAME, webhook_defaults};
pub use metrics::metrics;
pub use options::{Checked, Options};
pub use permissions::{optional_controllers, own_rules, rbac_rules};
pub use run::{add_controllers, run, run_with};
