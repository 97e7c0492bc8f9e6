//! Messages of `runtime.v1alpha1`. A number that is 0 is not set.

use std::collections::BTreeMap;

/// Identity of a pod.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxMetadata {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Uid.
    #[prost(string, tag = "2")]
    pub uid: String,
    /// Namespace.
    #[prost(string, tag = "3")]
    pub namespace: String,
    /// How often the sandbox was created.
    #[prost(uint32, tag = "4")]
    pub attempt: u32,
}

/// Identity of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerMetadata {
    /// Name in the pod.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How often the container was created.
    #[prost(uint32, tag = "2")]
    pub attempt: u32,
    /// Id; empty before the container is created.
    #[prost(string, tag = "3")]
    pub id: String,
}

/// Limit of huge pages of one size.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HugepageLimit {
    /// Size such as `2MB`.
    #[prost(string, tag = "1")]
    pub page_size: String,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub limit: u64,
}

/// Resources of a pod or container; times in microseconds, sizes in bytes.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxContainerResources {
    /// Period of the CPU quota.
    #[prost(int64, tag = "1")]
    pub cpu_period: i64,
    /// CPU time per period, −1 for no limit.
    #[prost(int64, tag = "2")]
    pub cpu_quota: i64,
    /// CPU weight, 1024 for one CPU.
    #[prost(int64, tag = "3")]
    pub cpu_shares: i64,
    /// Memory limit.
    #[prost(int64, tag = "4")]
    pub memory_limit_in_bytes: i64,
    /// OOM score adjustment, −1000 to 1000; 0 is a value.
    #[prost(int64, tag = "5")]
    pub oom_score_adj: i64,
    /// CPUs as a list such as `0-3,8`.
    #[prost(string, tag = "6")]
    pub cpuset_cpus: String,
    /// NUMA nodes as a list.
    #[prost(string, tag = "7")]
    pub cpuset_mems: String,
    /// Huge pages, by page size.
    #[prost(message, repeated, tag = "8")]
    pub hugepage_limits: Vec<HugepageLimit>,
    /// Files of cgroup v2 by name.
    #[prost(btree_map = "string, string", tag = "9")]
    pub unified: BTreeMap<String, String>,
    /// Limit of memory and swap together.
    #[prost(int64, tag = "10")]
    pub memory_swap_limit_in_bytes: i64,
}

/// Request of the hooks of a pod.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxHookRequest {
    /// The pod.
    #[prost(message, optional, tag = "1")]
    pub pod_meta: Option<PodSandboxMetadata>,
    /// Class of the runtime.
    #[prost(string, tag = "2")]
    pub runtime_handler: String,
    /// Labels.
    #[prost(btree_map = "string, string", tag = "3")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "4")]
    pub annotations: BTreeMap<String, String>,
    /// Cgroup of the pod.
    #[prost(string, tag = "5")]
    pub cgroup_parent: String,
    /// What the sandbox takes itself.
    #[prost(message, optional, tag = "6")]
    pub overhead: Option<LinuxContainerResources>,
    /// Sum of the containers.
    #[prost(message, optional, tag = "7")]
    pub resources: Option<LinuxContainerResources>,
}

/// Answer of the hooks of a pod; labels and annotations are added, the cgroup is replaced where one is given.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxHookResponse {
    /// Labels.
    #[prost(btree_map = "string, string", tag = "1")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[prost(btree_map = "string, string", tag = "2")]
    pub annotations: BTreeMap<String, String>,
    /// Cgroup of the pod.
    #[prost(string, tag = "3")]
    pub cgroup_parent: String,
    /// Resources.
    #[prost(message, optional, tag = "4")]
    pub resources: Option<LinuxContainerResources>,
}

impl PodSandboxHookResponse {
    /// The answer that changes nothing.
    pub fn echo(request: &PodSandboxHookRequest) -> Self {
        Self {
            labels: request.labels.clone(),
            annotations: request.annotations.clone(),
            cgroup_parent: request.cgroup_parent.clone(),
            resources: request.resources.clone(),
        }
    }
}

/// Request of the hooks of a container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerResourceHookRequest {
    /// Its pod.
    #[prost(message, optional, tag = "1")]
    pub pod_meta: Option<PodSandboxMetadata>,
    /// The container.
    #[prost(message, optional, tag = "2")]
    pub container_meta: Option<ContainerMetadata>,
    /// Annotations of the container.
    #[prost(btree_map = "string, string", tag = "3")]
    pub container_annotations: BTreeMap<String, String>,
    /// Resources of the container.
    #[prost(message, optional, tag = "4")]
    pub container_resources: Option<LinuxContainerResources>,
    /// Resources of the pod.
    #[prost(message, optional, tag = "5")]
    pub pod_resources: Option<LinuxContainerResources>,
    /// Annotations of the pod.
    #[prost(btree_map = "string, string", tag = "6")]
    pub pod_annotations: BTreeMap<String, String>,
    /// Labels of the pod.
    #[prost(btree_map = "string, string", tag = "7")]
    pub pod_labels: BTreeMap<String, String>,
    /// Cgroup of the pod.
    #[prost(string, tag = "8")]
    pub pod_cgroup_parent: String,
    /// Environment of the container.
    #[prost(btree_map = "string, string", tag = "9")]
    pub container_envs: BTreeMap<String, String>,
}

/// Answer of the hooks of a container. The CPU set and the environment replace what the container has, others where they are set.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerResourceHookResponse {
    /// Annotations of the container.
    #[prost(btree_map = "string, string", tag = "1")]
    pub container_annotations: BTreeMap<String, String>,
    /// Resources of the container.
    #[prost(message, optional, tag = "2")]
    pub container_resources: Option<LinuxContainerResources>,
    /// Cgroup of the pod.
    #[prost(string, tag = "3")]
    pub pod_cgroup_parent: String,
    /// Environment of the container.
    #[prost(btree_map = "string, string", tag = "4")]
    pub container_envs: BTreeMap<String, String>,
}

impl ContainerResourceHookResponse {
    /// The answer that changes nothing.
    pub fn echo(request: &ContainerResourceHookRequest) -> Self {
        Self {
            container_annotations: request.container_annotations.clone(),
            container_resources: request.container_resources.clone(),
            pod_cgroup_parent: request.pod_cgroup_parent.clone(),
            container_envs: request.container_envs.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = PodSandboxHookRequest::decode(&bytes[..]);
            let _ = ContainerResourceHookRequest::decode(&bytes[..]);
            let _ = PodSandboxHookResponse::decode(&bytes[..]);
            let _ = ContainerResourceHookResponse::decode(&bytes[..]);
        }
    }
}
