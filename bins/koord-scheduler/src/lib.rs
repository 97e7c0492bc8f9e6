//! koord-scheduler as a library: `koordctl up` runs it in its own process, the program is a thin main around it.
//!
//! Flags, configuration and wiring. Nodes are chosen in [`koord_scheduler_engine`] by the plugins of [`koord_scheduler_plugins`]; what is
//! written of it is in [`koord_scheduler_runtime`].
//!
//! Read first: [`Scheduler`] (the program), [`Options`] (the flags), [`Configuration`] (the file), [`run_with`] (what is wired).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod accepted;
mod auditor;
mod authentication;
mod configuration;
mod debug;
mod exposition;
mod extenders;
mod gates;
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
mod secure;
mod services;
mod snapshot;
mod version;

pub use configuration::Configuration;
pub use gates::{GATES, transformers};
pub use identity::{BUILD, NAME};
pub use koord_runtime::metrics::Exposition;
pub use koord_scheduler_framework::ReasonCode;
pub use koord_scheduler_runtime::Transformers;
pub use metrics::metrics;
pub use options::{Checked, Options};
pub use permissions::{GATED, Gated, rbac_rules};
pub use preset::Preset;
pub use run::{Settings, run, run_with};
pub use scheduler::Scheduler;
pub use secure::{CertificateFiles, FrontProxy, NamedCertificate, Secure};
pub use snapshot::{amend, engine, objects, snapshot};
