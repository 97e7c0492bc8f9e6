//! What is known of a pod.

mod read;
mod state;

use std::sync::Arc;

use koord_core::{key::ObjectKey, uid::Uid};
pub use koord_scheduler_framework::pod::Owner;
use koord_scheduler_framework::{labels::Labels, pod::Template as Placement};
use koord_types::{classes::Classes, priority::PriorityClass, qos::QosClass};

pub use self::{
    read::{DecodeError, template},
    state::{Condition, ContainerKind, ContainerState, Phase, State},
};

/// Pods of this priority and above are critical for the system.
pub const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// With this annotation, whatever its value, a pod may be evicted although rules protect it.
pub const EVICT: &str = "descheduler.alpha.kubernetes.io/evict";
/// With this annotation a pod asks not to be evicted.
pub const PREFER_NO_EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
/// A kubelet's copy of a static pod has this annotation.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Where a kubelet has a pod from: `api`, or else it is a static pod.
const SOURCE: &str = "kubernetes.io/config.source";
/// What its deletion costs, for ReplicaSets.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// What its eviction costs, for Koordinator.
pub const EVICTION_COST: &str = "scheduling.koordinator.sh/eviction-cost";

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Distinguishes it from another of the same name.
    pub uid: Uid,
    /// What it has in common with other pods of its workload.
    pub template: Arc<Template>,
    /// The node that it is bound to.
    pub node: Option<Arc<str>>,
    /// The objects that own it, in the order of its references.
    pub owners: Arc<[OwnerReference]>,
    /// The annotations that the descheduler reads.
    pub annotations: Labels,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// When its kubelet began to run it, in seconds since 1970; `None` before.
    pub started: Option<i64>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// What its status says, shared with pods in the same state.
    pub state: Arc<State>,
    /// When each condition of its state changed, in seconds since 1970; 0 where the status does not say.
    pub transitions: Box<[i64]>,
}

/// What pods of one workload have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// What its placement depends on: requests, affinity, tolerations, labels, priority.
    pub placement: Arc<Placement>,
    /// Its containers, in their order.
    pub containers: Box<[Container]>,
    /// Whether it has a volume that lives on its node: `emptyDir` or `hostPath`.
    pub has_local_storage: bool,
    /// The names of the PersistentVolumeClaims of its volumes.
    pub claims: Box<[Arc<str>]>,
    /// Whether it has resource claims.
    pub has_resource_claims: bool,
    /// Whether it requires nodes by affinity, be it with terms that no node can match.
    pub requires_affinity: bool,
    /// Whether it has a node selector.
    pub has_node_selector: bool,
}

/// A container that is no init container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    pub image: Arc<str>,
    /// What it requests of cpu, in thousandths of cores.
    pub cpu_milli: i64,
    /// What it requests of memory, in bytes.
    pub memory_bytes: i64,
}

/// An object that owns a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnerReference {
    pub owner: Arc<Owner>,
    /// Whether it controls the pod.
    pub is_controller: bool,
}

impl Pod {
    /// Its labels.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.template.placement.labels.get(key)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }

    pub fn namespace(&self) -> &str {
        // It is asked of every pod in every pass: names are short, and a search for short texts is slower than a loop.
        let key = self.key.as_str();
        key.bytes().position(|byte| byte == b'/').and_then(|end| key.get(..end)).unwrap_or_default()
    }

    /// `spec.priority`; 0 without one.
    pub fn priority(&self) -> i32 {
        self.template.placement.priority
    }

    /// The object that controls it.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|reference| reference.is_controller).map(|reference| &*reference.owner)
    }

    /// Whether an owner is of this kind, be it its controller or not.
    pub fn is_owned_by(&self, kind: &str) -> bool {
        self.owners.iter().any(|reference| &*reference.owner.kind == kind)
    }

    /// What its deletion costs, for ReplicaSets; 0 where it does not say.
    pub fn deletion_cost(&self) -> i32 {
        self.annotation(DELETION_COST).map_or(0, cost)
    }

    /// What its eviction costs; 0 where it does not say.
    pub fn eviction_cost(&self) -> i32 {
        self.annotation(EVICTION_COST).map_or(0, cost)
    }

    /// Whether it has not succeeded or failed.
    pub fn is_active(&self) -> bool {
        !matches!(self.state.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether its condition `Ready` is true.
    pub fn is_ready(&self) -> bool {
        self.state.conditions.iter().any(|condition| &*condition.kind == "Ready" && &*condition.status == "True")
    }

    /// Whether it counts as available: it is ready, has not ended and is not being deleted.
    pub fn is_available(&self) -> bool {
        self.is_active() && !self.is_deleting && self.is_ready()
    }

    /// Whether it is a kubelet's copy of a static pod.
    pub fn is_mirror(&self) -> bool {
        self.annotation(MIRROR).is_some()
    }

    /// Whether a kubelet has it from somewhere else than the API server.
    pub fn is_static(&self) -> bool {
        self.annotation(SOURCE).is_some_and(|source| source != "api")
    }

    pub fn is_system_critical(&self) -> bool {
        self.priority() >= SYSTEM_CRITICAL_PRIORITY
    }

    /// Kubernetes' QoS class: that of its status, or else what follows from its requests.
    pub fn kubernetes_qos(&self) -> &str {
        self.state.qos.as_deref().unwrap_or(self.template.placement.kubernetes_qos)
    }

    /// Its priority class and QoS class of Koordinator.
    pub fn classes(&self) -> Classes {
        Classes::of(|key| self.label(key), Some(self.priority()), || self.kubernetes_qos())
    }

    /// Its priority class of Koordinator: by its label, its priority or its QoS class.
    pub fn priority_class(&self) -> Option<PriorityClass> {
        self.classes().priority
    }

    /// Its QoS class of Koordinator: by its label, or by Kubernetes' class.
    pub fn qos_class(&self) -> Option<QosClass> {
        self.classes().qos
    }
}

/// A number of 32 bits. As Kubernetes reads costs, one with a plus sign or leading zeros is none.
fn cost(text: &str) -> i32 {
    let is_number = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    if is_number { text.parse().unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_whole_numbers_without_plus_and_leading_zeros() {
        for (text, expected) in [
            ("100", 100),
            ("-5", -5),
            ("0", 0),
            ("2147483647", i32::MAX),
            ("2147483648", 0),
            ("+10", 0),
            ("008", 0),
            ("1.5", 0),
            ("", 0),
        ] {
            let annotations = [(EVICTION_COST, text), (DELETION_COST, text)].into_iter().collect();
            let pod = Pod { annotations, ..Pod::default() };
            assert_eq!((pod.eviction_cost(), pod.deletion_cost()), (expected, expected), "{text:?}");
        }
        assert_eq!(Pod::default().eviction_cost(), 0);
    }
}
