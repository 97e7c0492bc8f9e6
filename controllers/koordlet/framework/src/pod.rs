//! A pod as the agent sees it: what the kubelet's list says of it, with the cgroups that follow from that.

use std::sync::Arc;

use jiff::Timestamp;
use koord_koordlet_system::{CgroupPath, ContainerId, Layout, QosFolder};
use koord_resource::{Quantity, ResourceList};
use koord_scheduling::{PodRequests, count};
use koord_types::{
    priority::PriorityClass,
    protocol::Labels,
    qos::{KubernetesQos, QosClass},
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};

/// A pod of this node.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub uid: Arc<str>,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Labels with `koordinator.sh` in their names.
    pub labels: Labels,
    /// Annotations with `koordinator.sh` in their names, and what container runtimes add.
    pub annotations: Labels,
    pub created: Option<Timestamp>,
    /// When the kubelet began to start it.
    pub started: Option<Timestamp>,
    pub is_terminating: bool,
    pub phase: Phase,
    pub priority: Option<i32>,
    /// The class that its label names; unknown names are none.
    pub qos_label: Option<QosClass>,
    pub kubernetes_qos: KubernetesQos,
    pub runtime_class: Option<Arc<str>>,
    pub uses_host_network: bool,
    pub ips: Vec<Arc<str>>,
    /// Containers, and init containers in their order.
    pub containers: Vec<Container>,
    pub overhead: ResourceList,
    /// Volumes that disks are behind.
    pub volumes: Vec<Volume>,
    /// The folder of the pod's cgroup.
    pub cgroup: CgroupPath,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
    #[default]
    Unknown,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    pub name: Arc<str>,
    pub kind: ContainerKind,
    /// None before the runtime has made it.
    pub id: Option<ContainerId>,
    pub state: ContainerState,
    pub requests: ResourceList,
    pub limits: ResourceList,
    /// The folder of its cgroup; none without an id.
    pub cgroup: Option<CgroupPath>,
}

/// When a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// As long as its pod.
    Regular,
    /// Before the others, to its end.
    Init,
    /// An init container that is restarted: it runs beside the others.
    Sidecar,
}

/// The state of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerState {
    #[default]
    Waiting,
    Running,
    Terminated,
}

/// A volume of a pod that a disk may be behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name in the pod.
    pub name: Arc<str>,
    /// The PersistentVolumeClaim; none of a volume that a CSI driver makes for the pod.
    pub claim: Option<Arc<str>>,
}

/// The runtime class of pods in virtual machines, whose containers have no cgroups on the node.
const KATA: &str = "kata";

// === impl Pod ===

impl Pod {
    /// `NAMESPACE/NAME`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The QoS class: the one of the label, else the one that goes with Kubernetes' class.
    pub fn qos(&self) -> Option<QosClass> {
        QosClass::of_pod(&self.labels, &self.kubernetes_qos)
    }

    /// Whether the label names the class BE.
    pub fn is_labelled_be(&self) -> bool {
        self.qos_label == Some(QosClass::Be)
    }

    /// The folder of Kubernetes' QoS class that the pod's cgroup is in.
    pub fn folder(&self) -> QosFolder {
        QosFolder::of_class(self.kubernetes_qos.as_str())
    }

    /// The priority class: the declared one, else the one that goes with the QoS class.
    pub fn priority_class(&self) -> Option<PriorityClass> {
        PriorityClass::of_pod(&self.labels, self.priority, self.qos().as_ref())
    }

    /// The priority: its own unless it is 0, else the default of its class.
    pub fn priority_value(&self) -> i32 {
        PriorityClass::priority_of_pod(&self.labels, self.priority, self.qos().as_ref())
    }

    /// Whether it is pending or running.
    pub fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Pending | Phase::Running)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether it runs in a virtual machine: its containers have no cgroups on the node.
    pub fn is_virtual_machine(&self) -> bool {
        self.runtime_class.as_deref() == Some(KATA)
    }

    /// The containers that run as long as the pod.
    pub fn regular_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| container.kind == ContainerKind::Regular)
    }

    /// The containers that run beside each other: regular ones and sidecars.
    pub fn running_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().filter(|container| container.kind != ContainerKind::Init)
    }

    /// What the pod requests as a whole, by the rule of the scheduler: thousandths of CPUs, or units of other resources.
    pub fn request(&self, resource: &str) -> i64 {
        self.total(resource, |container| &container.requests)
    }

    /// The limit of the pod as a whole, by the same rule; containers without one do not count.
    pub fn limit(&self, resource: &str) -> i64 {
        self.total(resource, |container| &container.limits)
    }

    fn total(&self, resource: &str, list: fn(&Container) -> &ResourceList) -> i64 {
        let mut total = PodRequests::<Quantity>::default();
        for container in &self.containers {
            let amount = list(container).get(resource).cloned().unwrap_or_default();
            match container.kind {
                ContainerKind::Regular => total.container(amount),
                ContainerKind::Init => total.init_container(amount, false),
                ContainerKind::Sidecar => total.init_container(amount, true),
            }
        }
        count(resource, &total.total(|sum| sum, self.overhead.get(resource)))
    }

    /// The batch CPU, in thousandths, that regular containers and sidecars request; what is not positive does not count.
    pub fn batch_cpu_request(&self) -> i64 {
        self.positive_sum(|container| container.request(BATCH_CPU))
    }

    /// The batch memory, in bytes, that regular containers and sidecars request.
    pub fn batch_memory_request(&self) -> i64 {
        self.positive_sum(|container| container.request(BATCH_MEMORY))
    }

    fn positive_sum(&self, amount: impl Fn(&Container) -> Option<i64>) -> i64 {
        self.running_containers().filter_map(amount).filter(|amount| *amount > 0).fold(0, i64::saturating_add)
    }
}

// === impl Container ===

impl Container {
    /// What it requests: thousandths of CPUs, or units of other resources; `None` when it does not name the resource.
    pub fn request(&self, resource: &str) -> Option<i64> {
        self.requests.get(resource).map(|amount| count(resource, amount))
    }

    /// Its limit: thousandths of CPUs, or units of other resources; `None` when it does not name the resource.
    pub fn limit(&self, resource: &str) -> Option<i64> {
        self.limits.get(resource).map(|amount| count(resource, amount))
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.state == ContainerState::Running
    }
}

/// What makes the cgroups of a pod known: its class and uid.
pub(crate) fn cgroups(pod: &mut Pod, layout: Layout) {
    pod.cgroup = layout.pod(pod.folder(), &pod.uid);
    for container in &mut pod.containers {
        container.cgroup = container.id.as_ref().map(|id| layout.container(&pod.cgroup, id));
    }
}
