//! The controllers of koord-manager.
//!
//! Each is a pure core (a function from plain data to what shall be) in a thin frame that names the caches it reads.
//! [`nodeslo`] and [`nodemetric`] are the pattern for the others. The crate knows no sockets and no tasks.
//!
//! Read first: [`nodeslo::NodeSloController`], [`view`] (what is kept of each object).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod amount;
mod colocation;
pub mod colocationprofile;
mod config;
pub mod nodemetric;
pub mod noderesource;
pub mod nodeslo;
mod one_per_node;
pub mod quotaprofile;
pub mod view;

pub use config::ConfigSource;
use koord_resource::{controller::ControllerSpec, controllers};
use koord_runtime::metrics::Description;

use crate::{
    colocationprofile::ColocationProfileController, nodemetric::NodeMetricController,
    noderesource::NodeResourceController, nodeslo::NodeSloController, quotaprofile::QuotaProfileController,
};

/// What the controllers count.
pub const METRICS: &[Description] = &[
    config::ERRORS,
    config::INVALID,
    nodemetric::WRITES,
    nodemetric::SPECS,
    nodeslo::WRITES,
    nodeslo::SPECS,
    noderesource::counts::WRITES,
    noderesource::counts::PLUGINS,
    noderesource::counts::AMOUNTS,
    noderesource::counts::STALE,
];

/// All controllers as data: for RBAC documents and reference pages.
pub const CONTROLLERS: &[ControllerSpec] = controllers![
    ColocationProfileController,
    NodeMetricController,
    NodeResourceController,
    NodeSloController,
    QuotaProfileController
];
