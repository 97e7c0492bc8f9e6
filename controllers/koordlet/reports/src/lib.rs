//! What the agent reports of its node, as functions of what it knows: NodeResourceTopology and NodeMetric.
//!
//! Read first: [`TopologyReport`], the CPUs and who may use them. Nothing here reads files, sends requests or knows the time.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod kubelet_configuration;
mod take_cpus;
mod topology;

pub use kubelet_configuration::{KubeletConfiguration, KubeletConfigurationError};
pub use topology::{LiveTopology, MANAGED_BY, TopologyError, TopologyInput, TopologyReport};
