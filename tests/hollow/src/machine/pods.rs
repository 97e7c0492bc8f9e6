//! Pods as a machine and its kubelet see them.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, ResourceRequirements};
use koord_koordlet_system::{CgroupPath, ContainerId, QosFolder};
use koord_resource::Quantity;
use serde_json::{Value, json};

use super::LAYOUT;
use crate::roster::running_pod;

/// A pod on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachinePod {
    pub uid: String,
    pub folder: QosFolder,
    containers: Vec<ContainerId>,
    /// What it requests, in thousandths of a core: batch and mid resources where it requests these.
    pub request_milli: u64,
    pub memory_bytes: u64,
    /// Its native limit of CPU, in thousandths of a core; 0 for none.
    limit_milli: u64,
}

impl MachinePod {
    /// A pod that runs; `None` of others.
    pub fn of(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Running"))?;
        let running = running_pod(pod);
        let uid = pod.metadata.uid.clone()?;
        let ids = status.container_statuses.iter().flatten().filter_map(|status| container_id(&uid, status));
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let limits = containers.filter_map(|container| native_cpu_limit(container.resources.as_ref()?));
        Some(Self {
            folder: QosFolder::of_class(qos_class(pod)),
            containers: ids.filter_map(|id| ContainerId::parse(&id).ok()).collect(),
            request_milli: running.cpu_milli,
            memory_bytes: running.memory_bytes,
            limit_milli: limits.sum(),
            uid,
        })
    }

    pub fn is_best_effort(&self) -> bool {
        self.folder == QosFolder::BestEffort
    }

    pub fn cgroup(&self) -> CgroupPath {
        LAYOUT.pod(self.folder, &self.uid)
    }

    pub fn containers(&self) -> Vec<CgroupPath> {
        let pod = self.cgroup();
        self.containers.iter().map(|container| LAYOUT.container(&pod, container)).collect()
    }

    /// What a kubelet writes into its files.
    pub(super) fn given(&self) -> Vec<(&'static str, String)> {
        if self.limit_milli == 0 {
            return Vec::new();
        }
        vec![("cpu.max", format!("{} 100000\n", self.limit_milli * 100))]
    }
}

/// The class of a pod as the API server writes it into its status, or as it follows from its resources.
fn qos_class(pod: &Pod) -> &str {
    if let Some(class) = pod.status.as_ref().and_then(|status| status.qos_class.as_deref()) {
        return class;
    }
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let has_native = |resources: &ResourceRequirements| {
        let names = resources.requests.iter().chain(&resources.limits).flat_map(|amounts| amounts.keys());
        names.into_iter().any(|name| name == "cpu" || name == "memory")
    };
    let is_native = containers.filter_map(|container| container.resources.as_ref()).any(has_native);
    if is_native { "Burstable" } else { "BestEffort" }
}

fn native_cpu_limit(resources: &ResourceRequirements) -> Option<u64> {
    let limit = resources.limits.as_ref()?.get("cpu")?.0.parse::<Quantity>().ok()?;
    u64::try_from(limit.milli_value()).ok()
}

/// The id of a container for a runtime that the agent knows: that of a hollow container has slashes.
fn container_id(uid: &str, status: &ContainerStatus) -> Option<String> {
    status.container_id.as_ref().map(|_| format!("containerd://{}-{}", uid.replace('-', ""), status.name))
}

/// What the kubelet of a machine answers for these pods.
pub fn pod_list(pods: &[Pod]) -> Value {
    let answered = |pod: &Pod| {
        let mut pod = pod.clone();
        let (uid, class) = (pod.metadata.uid.clone().unwrap_or_default(), qos_class(&pod).to_owned());
        if let Some(status) = &mut pod.status {
            status.qos_class = Some(class);
            for container in status.container_statuses.iter_mut().flatten() {
                container.container_id = container_id(&uid, container);
            }
        }
        pod
    };
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods.iter().map(answered).collect::<Vec<_>>()})
}
