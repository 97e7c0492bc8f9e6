//! koord-descheduler as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Flags and wiring. The configuration and the profiles are in [`koord_descheduler_assembly`], what a pass decides in
//! [`koord_descheduler_framework`](../koord_descheduler_framework/index.html) and the strategies, and when passes are made and carried out in
//! [`koord_descheduler_runtime`].
//!
//! Read first: [`Options`] (the flags), [`run_with`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod accepted;
mod configuration;
mod gates;
mod identity;
mod metrics;
mod options;
mod permissions;
mod reload;
mod run;

pub use self::{
    configuration::{configuration, configuration_with_text},
    gates::GATES,
    identity::{BUILD, NAME},
    metrics::{community_metrics, metrics},
    options::{Checked, Options},
    permissions::{rbac_rules, rules_by_scope},
    reload::ConfigurationFile,
    run::{Settings, run, run_with},
};
