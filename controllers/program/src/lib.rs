//! What a program does around its own work, so that its `main` stays short.
//!
//! Every program: flags as Go programs take them ([`flags`]), feature gates ([`gates`]), logs ([`logs`]), signals, exit
//! codes and the termination message ([`run`]). With the feature `controllers`, programs that run controllers: their
//! common flags ([`ControllerFlags`]), the API server that they talk to ([`kubeconfig`], [`Dependencies`]), and the wiring
//! of metrics, health, traces, events and leader election ([`Program`]), and what they would write ([`plan`]); with the feature
//! `configuration` the file that `--config` names (`ConfigFlag`), and what components of Kubernetes do with such a file (`component`). For tools beside
//! them: a server that has answered ([`connect`]), objects of [`files`], of any kind ([`dynamic`]) and whole collections
//! ([`listing`]), what checks find ([`findings`], [`obstacle`], [`lease`]), and answers for people ([`output`], [`target`], [`screen`],
//! [`table`], [`units`], [`names`], [`error_text`], [`permission`]). The crate knows nothing of Koordinator.
//!
//! Read first: [`run`], then [`Program`]. `docs/program.md` shows a whole program.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

#[cfg(feature = "controllers")]
mod build;
#[cfg(feature = "configuration")]
pub mod component;
#[cfg(feature = "configuration")]
mod config_flag;
#[cfg(feature = "controllers")]
pub mod connect;
#[cfg(feature = "controllers")]
mod controller_flags;
#[cfg(feature = "serving")]
pub mod debug;
#[cfg(feature = "controllers")]
mod dependencies;
#[cfg(feature = "controllers")]
pub mod dynamic;
#[cfg(feature = "controllers")]
pub mod error_text;
#[cfg(feature = "controllers")]
pub mod files;
#[cfg(feature = "controllers")]
pub mod findings;
pub mod flags;
pub mod gates;
#[cfg(feature = "controllers")]
pub mod kubeconfig;
#[cfg(feature = "controllers")]
pub mod lease;
#[cfg(feature = "controllers")]
pub mod listing;
pub mod logs;
mod manifests;
#[cfg(feature = "controllers")]
mod metric_flags;
#[cfg(feature = "controllers")]
pub mod names;
#[cfg(feature = "controllers")]
pub mod obstacle;
#[cfg(feature = "controllers")]
pub mod output;
#[cfg(feature = "controllers")]
pub mod permission;
#[cfg(feature = "controllers")]
pub mod plan;
mod process;
#[cfg(feature = "controllers")]
mod program;
#[cfg(feature = "controllers")]
pub mod screen;
#[cfg(feature = "serving")]
pub mod serving;
#[cfg(feature = "controllers")]
mod setup;
#[cfg(feature = "controllers")]
pub mod table;
#[cfg(feature = "controllers")]
pub mod target;
mod termination;
#[cfg(feature = "controllers")]
pub mod units;
#[cfg(feature = "controllers")]
mod version;

pub use anyhow::{Error, Result};
#[cfg(feature = "controllers")]
pub use build::Build;
#[cfg(feature = "configuration")]
pub use config_flag::ConfigFlag;
#[cfg(feature = "controllers")]
pub use controller_flags::{ControllerFlags, ControllerSettings};
#[cfg(feature = "controllers")]
pub use dependencies::Dependencies;
pub use koord_core::error::in_one_line;
pub use manifests::print_manifests;
#[cfg(feature = "controllers")]
pub use metric_flags::MetricFlags;
pub use process::{TerminationSignals, run};
#[cfg(feature = "configuration")]
pub use program::run_configured;
#[cfg(feature = "controllers")]
pub use program::{Program, metrics, permissions, read_flags, run_controllers};
#[cfg(feature = "controllers")]
pub use setup::Setup;
#[cfg(feature = "controllers")]
pub use version::{ShownVersion, shown_version};
