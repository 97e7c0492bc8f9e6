//! What the agent reports of its node, as functions of what it knows: NodeResourceTopology and NodeMetric.
//!
//! Read first: [`TopologyReport`], the CPUs and who may use them; [`node_metric()`], what the node and its pods use. Nothing here reads files, sends requests or knows the time.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod kubelet_configuration;
mod node_metric;
mod take_cpus;
mod topology;

pub use kubelet_configuration::{KubeletConfiguration, KubeletConfigurationError};
pub use node_metric::{
    CollectedMemory, MemoryUsage, NodeMetricInput, NodeMetricPolicy, NodeMetricReport, ServedFields,
    allocatable_gauges, container_resource_gauges, gpu_usage, has_usage, node_metric, node_metric_gauges,
};
pub use topology::{LiveTopology, MANAGED_BY, TopologyError, TopologyInput, TopologyReport};
