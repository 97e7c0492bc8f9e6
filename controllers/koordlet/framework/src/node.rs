//! The Node object as the agent sees it.

use std::sync::Arc;

use koord_resource::ResourceList;
use koord_scheduling::count;
use koord_types::{node_annotations::NODE_RESERVATION, protocol::Labels};

/// The node that the agent runs on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// Labels with `koordinator.sh` in their names.
    pub labels: Labels,
    /// Annotations with `koordinator.sh` in their names; `None` when the object has no annotation at all.
    pub annotations: Option<Labels>,
    pub capacity: ResourceList,
    pub allocatable: ResourceList,
    /// Addresses with their types, such as `InternalIP`.
    pub addresses: Vec<(Arc<str>, Arc<str>)>,
    /// The port of the kubelet, with TLS.
    pub kubelet_port: u16,
}

impl Node {
    /// All CPUs, in thousandths; 0 where the object names none.
    pub fn capacity_milli_cpu(&self) -> i64 {
        self.capacity.get("cpu").map_or(0, |amount| count("cpu", amount))
    }

    /// All memory, in bytes; 0 where the object names none.
    pub fn capacity_bytes(&self) -> i64 {
        self.capacity.get("memory").map_or(0, |amount| count("memory", amount))
    }

    /// What is allocatable of a resource, in thousandths of CPUs or in units; `None` when it is not named.
    pub fn allocatable(&self, resource: &str) -> Option<i64> {
        self.allocatable.get(resource).map(|amount| count(resource, amount))
    }

    /// An annotation by its name.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// The thousandths of CPUs that are kept away from pods: by the kubelet (capacity less allocatable) or by the reservation, whichever is more.
    pub fn reserved_milli_cpu(&self) -> i64 {
        let by_kubelet = self.capacity_milli_cpu() - self.allocatable("cpu").unwrap_or_default();
        let reservation = self.annotations.as_ref().and_then(|annotations| NODE_RESERVATION.get(annotations).ok()?);
        let by_reservation = reservation.map_or(0, |reservation| {
            if reservation.reserved_cpus.is_empty() {
                reservation.resources.get("cpu").map_or(0, |amount| count("cpu", amount))
            } else {
                reservation.cpus().map_or(0, |cpus| i64::try_from(cpus.len()).unwrap_or(i64::MAX).saturating_mul(1000))
            }
        });
        by_kubelet.max(by_reservation).max(0)
    }
}
