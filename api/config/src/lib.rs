//! Component configurations as declared types: `KubeSchedulerConfiguration` with the arguments of Koordinator's plugins,
//! and `DeschedulerConfiguration`.
//!
//! A type is the one source: its JSON Schema (by `schemars`) is what a document is checked against, what editors
//! complete by, and what is documented. Decoding is strict: unknown fields, wrong types, values out of range, unknown
//! and duplicate plugins are [`Problem`]s with the path of the field and, where it is known, what would be right.
//! What a schema cannot say is a function beside the type.
//!
//! The crate reads no files and no YAML: a document comes as a JSON value. Read first: [`Kind`], [`Problem`],
//! [`Effective`].
//!
//! ```
//! use koord_config::Kind;
//! let document = serde_json::json!({
//!     "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
//!     "profiles": [{"schedulerName": "koord-scheduler", "pluginConfig": [
//!         {"name": "Reservation", "args": {"gcDurationSecond": 5}}]}],
//! });
//! let problems = Kind::of(&document).unwrap().check(&document);
//! assert_eq!(problems[0].to_string(), "profiles[0].pluginConfig[0].args.gcDurationSecond: unknown field");
//! assert_eq!(problems[0].suggestion.as_deref(), Some("did you mean gcDurationSeconds?"));
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod bounded;
mod catalogue;
mod client_connection;
pub mod descheduler;
mod effective;
mod kind;
mod leader_election;
mod plugin_set;
mod problem;
mod published;
pub mod scheduler;
mod strict;

pub use args::{Args, PluginArgs, decode};
pub use bounded::{DurationText, Percent, QuantityText, Weight};
pub use client_connection::ClientConnection;
pub use effective::{Effective, Origin};
pub use kind::Kind;
pub use leader_election::LeaderElection;
pub use plugin_set::{Plugin, PluginConfig, PluginSet};
pub use problem::{Problem, Problems, Step, path_text};
pub use strict::check_schema;
