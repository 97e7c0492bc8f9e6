//! QoS classes, and how the class of a pod is derived.

/// The label that names a pod's QoS class.
pub const QOS_LABEL: &str = "koordinator.sh/qosClass";

use crate::word::words;

words! {
    /// Koordinator's QoS class of a pod: how its CPUs and memory are shared.
    pub enum QosClass {
        /// Latency sensitive, with CPUs that nobody else uses.
        Lse = "LSE",
        /// Latency sensitive, with CPUs reserved that others may use while they idle.
        Lsr = "LSR",
        /// Latency sensitive, on shared CPUs.
        Ls = "LS",
        /// Best effort: uses what others leave, and gives way to them.
        Be = "BE",
        /// Daemons of the node.
        System = "SYSTEM",
    }
}

impl QosClass {
    /// The class that a label names; an unknown name is none.
    pub fn of_label(label: Option<&str>) -> Option<Self> {
        Some(match label? {
            "LSE" => Self::Lse,
            "LSR" => Self::Lsr,
            "LS" => Self::Ls,
            "BE" => Self::Be,
            "SYSTEM" => Self::System,
            _ => return None,
        })
    }

    /// The class of a pod that declares none, by Kubernetes' own class.
    pub fn of_kubernetes(qos: &str) -> Option<Self> {
        match qos {
            "Guaranteed" => Some(Self::Lsr),
            "Burstable" => Some(Self::Ls),
            "BestEffort" => Some(Self::Be),
            _ => None,
        }
    }
}
