//! koord-manager as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Wiring. Flags, gates and controllers are in [`koord_manager_assembly`], what the controllers decide is in
//! [`koord_manager_controllers`](../koord_manager_controllers/index.html), and what the webhooks answer in [`koord_webhook_handlers`].
//!
//! Read first: [`run_with`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod run;

pub use run::{run, run_with};
