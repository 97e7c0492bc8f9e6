//! A cluster for the tests of an operator: an API server inside the test, the operator on its real tasks, its webhooks without
//! sockets, and time that passes at once.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use koord_testing::{Cluster, Result, run};
//! use serde_json::json;
//!
//! fn main() -> Result<()> {
//!     run(async {
//!         // An operator adds its controllers here, by the function of its `main`: setup.core().add(…)
//!         let cluster = Cluster::start("example", &[], |_setup| Ok(())).await?;
//!         cluster.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello"}})).await?;
//!         cluster.until(&cluster.api::<ConfigMap>(), "hello", "is there", |_| true).await?;
//!         Ok(())
//!     })
//! }
//! ```
//!
//! [`run()`] is a runtime of one thread whose time is paused: a wait of hours takes as long as the work in it. Where an operator
//! reaches sockets of its own, or runs as a process, the test needs a runtime in real time instead; the cluster follows
//! either. The crate knows nothing of the kinds that it serves.
//!
//! Read first: [`Cluster`], then [`Answers`] (webhooks of the operator) and [`Failure`] (what a test shows that waited in vain).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cluster;
mod failure;
mod install;
mod log;
mod operator;
mod reviews;
mod run;
mod wait;

pub use anyhow::{Error, Result};
pub use koord_program::{Setup, gates};

pub use self::{cluster::Cluster, failure::Failure, operator::Answers, run::run};
