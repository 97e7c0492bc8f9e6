//! QoS classes, and how the class of a pod is derived.

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
