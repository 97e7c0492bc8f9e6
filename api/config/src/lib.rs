//! Component configurations as declared types: `KubeSchedulerConfiguration` with the arguments of Koordinator's plugins,
//! `DeschedulerConfiguration`, and the policies of kubernetes-sigs/descheduler, which are translated into one.
//!
//! How a type is a configuration is `koord-configuration`: strict decoding, problems with path and suggestion, schemas, the origin of
//! each value. Here are the fields of both configurations, their plugins with the [`Args`] of each, and the rules between them:
//! unknown and duplicate plugins, and arguments that their plugin would refuse.
//!
//! The crate reads no files and no YAML: a document comes as a JSON value. Read first: [`Kind`], [`PluginArgs`],
//! [`scheduler::Resolved`].
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
mod catalogue;
pub mod descheduler;
mod kind;
mod plugin_set;
pub mod policy;
mod published;
pub mod scheduler;

pub use args::{Args, PluginArgs, arguments};
pub use kind::Kind;
pub use plugin_set::{Plugin, PluginConfig, PluginSet};

/// The page of the derive: its example needs koord-configuration, which a crate of procedural macros cannot have.
#[cfg(doctest)]
#[doc = include_str!("../../../macros/docs/configuration.md")]
struct Derive;
