//! What a node agent shows of itself as JSON: [`NodeStatus`] at [`STATUS_PATH`], [`NodeFiles`] at [`FILES_PATH`].
//!
//! The agent writes these documents and koordctl reads them. Members may be added: a reader ignores those that it does not know, and takes
//! an absent list for an empty one.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod files;
mod status;

pub use files::{Comparison, Constraint, Decision, FileState, NodeContainer, NodeFiles, NodePod, Reason};
pub use status::{Capability, CapabilityState, Input, NodeStatus};

/// Where a [`NodeStatus`] is served.
pub const STATUS_PATH: &str = "/node/status";
/// Where [`NodeFiles`] are served; `?pod=NAMESPACE/NAME` asks for those of a pod, its containers and the cgroups above them.
pub const FILES_PATH: &str = "/node/files";
