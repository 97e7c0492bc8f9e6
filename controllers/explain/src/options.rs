//! What is to be explained, where its objects come from, and how the answer is written.

use std::path::PathBuf;

use jiff::Timestamp;
use koord_program::{connect::ClusterFlags, output::OutputFormat};

/// An explanation of what koord-manager writes about a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeOptions<'a> {
    pub node: &'a str,
    /// Files with the objects; those of a cluster where it is empty.
    pub files: &'a [PathBuf],
    /// The time for which it is explained; `None` for the cluster's, or with files now.
    pub at: Option<Timestamp>,
    /// Namespace of slo-controller-config.
    pub config_namespace: &'a str,
    /// Name of slo-controller-config.
    pub slo_config_name: &'a str,
    pub cluster: ClusterFlags<'a>,
    pub output: OutputFormat,
}

/// An explanation of the devices, CPUs and NUMA nodes of a node.
#[derive(Clone, Copy, Debug)]
pub struct AllocationOptions<'a> {
    pub node: &'a str,
    /// Files with the objects; those of a cluster where it is empty.
    pub files: &'a [PathBuf],
    pub cluster: ClusterFlags<'a>,
    pub output: OutputFormat,
}

/// An explanation of a quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaOptions<'a> {
    pub name: &'a str,
    /// Namespace of the quota; also of proposed quotas that name none.
    pub namespace: Option<&'a str>,
    /// Files with the objects; those of a cluster where it is empty.
    pub files: &'a [PathBuf],
    /// Files with proposed quotas, which are applied one after the other.
    pub what_if: &'a [PathBuf],
    /// Feature gates of koord-manager, of which some decide what is refused.
    pub feature_gates: &'a str,
    pub cluster: ClusterFlags<'a>,
    pub output: OutputFormat,
}
