//! Orders in which pods are evicted, as far as several strategies share them.

use crate::pod::{PREFER_NO_EVICTION, Pod};

/// The order of kubernetes-sigs/descheduler, from what is evicted first: priority, then Kubernetes' QoS class, then pods that do not ask to stay. Sort
/// stably by it.
pub fn low_to_high(pod: &Pod) -> impl Ord + use<> {
    (pod.priority(), kubernetes_qos_rank(pod), pod.annotation(PREFER_NO_EVICTION).is_some())
}

/// `BestEffort` before `Burstable` before `Guaranteed`.
pub fn kubernetes_qos_rank(pod: &Pod) -> u8 {
    match pod.kubernetes_qos() {
        "BestEffort" => 0,
        "Burstable" => 1,
        _ => 2,
    }
}
