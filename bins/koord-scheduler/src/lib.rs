//! koord-scheduler as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Flags and wiring. The configuration and the profiles are in [`koord_scheduler_assembly`]; nodes are chosen in [`koord_scheduler_engine`], and
//! what is written of it is in [`koord_scheduler_runtime`].
//!
//! Read first: [`Scheduler`] (the program), [`Options`] (the flags), [`run_with`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod accepted;
mod auditor;
mod configuration;
mod debug;
mod hooks;
mod identity;
mod metrics;
mod options;
mod permissions;
mod plugins;
mod preset;
mod resources;
mod run;
mod scheduler;
mod services;

pub use configuration::configuration;
pub use identity::{BUILD, NAME};
pub use koord_runtime::metrics::Exposition;
pub use koord_scheduler_framework::ReasonCode;
pub use metrics::metrics;
pub use options::{Checked, Options};
pub use permissions::{GATED, Gated, rbac_rules};
pub use preset::Preset;
pub use run::{Settings, run, run_with};
pub use scheduler::Scheduler;
