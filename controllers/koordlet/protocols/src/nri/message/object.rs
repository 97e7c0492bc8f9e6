//! Pods and containers as the runtime describes them.

use std::collections::BTreeMap;

use super::resources::{LinuxResources, OptionalI64, OptionalU32};

/// A pod.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandbox {
    /// Id of the sandbox.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Name of the pod.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Uid of the pod.
    #[prost(string, tag = "3")]
    pub uid: String,
    /// Namespace of the pod.
    #[prost(string, tag = "4")]
    pub namespace: String,
    /// Labels.
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
    /// Class of the runtime.
    #[prost(string, tag = "7")]
    pub runtime_handler: String,
    /// Cgroups and resources.
    #[prost(message, optional, tag = "8")]
    pub linux: Option<LinuxPodSandbox>,
    /// Process of the sandbox.
    #[prost(uint32, tag = "9")]
    pub pid: u32,
    /// Addresses.
    #[prost(string, repeated, tag = "10")]
    pub ips: Vec<String>,
}

/// Cgroups and resources of a pod.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxPodSandbox {
    /// What the sandbox takes itself.
    #[prost(message, optional, tag = "1")]
    pub pod_overhead: Option<LinuxResources>,
    /// Sum of the containers.
    #[prost(message, optional, tag = "2")]
    pub pod_resources: Option<LinuxResources>,
    /// Cgroup of the pod.
    #[prost(string, tag = "3")]
    pub cgroup_parent: String,
    /// Cgroup of the sandbox.
    #[prost(string, tag = "4")]
    pub cgroups_path: String,
    /// Resources of the sandbox.
    #[prost(message, optional, tag = "6")]
    pub resources: Option<LinuxResources>,
}

/// A container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Container {
    /// Id of the container.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Id of its pod's sandbox.
    #[prost(string, tag = "2")]
    pub pod_sandbox_id: String,
    /// Name in the pod.
    #[prost(string, tag = "3")]
    pub name: String,
    /// 0 unknown, 1 created, 2 paused, 3 running, 4 stopped.
    #[prost(int32, tag = "4")]
    pub state: i32,
    /// Labels.
    #[prost(btree_map = "string, string", tag = "5")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "6")]
    pub annotations: BTreeMap<String, String>,
    /// Command line.
    #[prost(string, repeated, tag = "7")]
    pub args: Vec<String>,
    /// Environment, `NAME=value`.
    #[prost(string, repeated, tag = "8")]
    pub env: Vec<String>,
    /// Mounts.
    #[prost(message, repeated, tag = "9")]
    pub mounts: Vec<Mount>,
    /// Cgroup, devices and resources.
    #[prost(message, optional, tag = "11")]
    pub linux: Option<LinuxContainer>,
    /// First process.
    #[prost(uint32, tag = "12")]
    pub pid: u32,
}

/// A mount.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Mount {
    /// Path in the container.
    #[prost(string, tag = "1")]
    pub destination: String,
    /// Type such as `bind`.
    #[prost(string, tag = "2")]
    pub r#type: String,
    /// Path on the node.
    #[prost(string, tag = "3")]
    pub source: String,
    /// Options such as `rbind`.
    #[prost(string, repeated, tag = "4")]
    pub options: Vec<String>,
}

/// Cgroup, devices and resources of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxContainer {
    /// Devices.
    #[prost(message, repeated, tag = "2")]
    pub devices: Vec<LinuxDevice>,
    /// Resources.
    #[prost(message, optional, tag = "3")]
    pub resources: Option<LinuxResources>,
    /// OOM score adjustment.
    #[prost(message, optional, tag = "4")]
    pub oom_score_adj: Option<OptionalI64>,
    /// Cgroup; `slice:prefix:id` under systemd.
    #[prost(string, tag = "5")]
    pub cgroups_path: String,
}

/// A device.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxDevice {
    /// Path in the container.
    #[prost(string, tag = "1")]
    pub path: String,
    /// `c`, `b` or `p`.
    #[prost(string, tag = "2")]
    pub r#type: String,
    /// Major number.
    #[prost(int64, tag = "3")]
    pub major: i64,
    /// Minor number.
    #[prost(int64, tag = "4")]
    pub minor: i64,
    /// Mode of the file.
    #[prost(message, optional, tag = "5")]
    pub file_mode: Option<OptionalU32>,
    /// Owner of the file.
    #[prost(message, optional, tag = "6")]
    pub uid: Option<OptionalU32>,
    /// Group of the file.
    #[prost(message, optional, tag = "7")]
    pub gid: Option<OptionalU32>,
}
