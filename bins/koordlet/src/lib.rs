//! koordlet as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Flags and wiring. What the agent does is in [`koord_koordlet_runtime`].
//!
//! Read first: [`Options`] (the flags), [`run()`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod accepted;
mod gates;
mod identity;
mod metrics;
mod options;
mod permissions;
mod run;

pub use self::{
    gates::GATES,
    identity::{BUILD, NAME},
    metrics::metrics,
    options::{Checked, Folders, Options},
    permissions::rbac_rules,
    run::{run, run_with},
};
