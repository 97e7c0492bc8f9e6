//! Why a node's devices do not do for a pod.

use koord_scheduler_framework::{Reason, ReasonCode, Refusal};

use super::request::Kind;

/// Why a node's devices do not do for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The node has no device of this kind, or none that the pod selects.
    #[error("Insufficient {0} devices")]
    NoDevices(Kind),
    /// Too few of them have enough left.
    #[error("Insufficient {0} devices")]
    Devices(Kind),
    /// No device of this kind has virtual functions.
    #[error("Insufficient {0} VirtualFunctions")]
    NoVirtualFunctions(Kind),
    /// Devices that must be near each other are not.
    #[error("node(s) Device Joint-Allocate rules violation")]
    Joint,
    /// No template of this model of GPU has what the pod requests.
    #[error("no matched GPU shared resource template")]
    Template,
    /// The pod or the node wants partitions, and none are known.
    #[error("node(s) missing GPU Partition Table")]
    NoPartitions,
    /// No partition has this many GPUs.
    #[error("node(s) Unsupported number of GPU requests")]
    PartitionSize,
    /// All partitions of this many GPUs are in use.
    #[error("Insufficient Partitioned GPU Devices")]
    Partitions,
    /// Where the GPUs are is not known.
    #[error("node(s) missing GPU Device Topology Tree")]
    NoTopology,
    /// Shares of several GPUs are not looked for in scopes.
    #[error("node(s) Unsupported Multi-Shared GPU")]
    MultiShared,
    /// No scope that is narrow enough has enough GPUs left.
    #[error("Insufficient Topology Scoped GPU Devices")]
    Scope,
    /// Too few GPUs have enough left.
    #[error("Insufficient GPU Devices")]
    Gpus,
    /// The NUMA nodes have fewer devices than the pod requests.
    #[error("Insufficient NUMA Scoped Devices")]
    NumaNodes,
    /// Nothing on the node keeps apart the pods that share a GPU.
    #[error("GPUIsolationProviderHAMICore not found on the node")]
    Isolation,
}

impl Refused {
    /// All of them, each with the number of its place.
    const ALL: [Self; 20] = [
        Self::NoDevices(Kind::Gpu),
        Self::NoDevices(Kind::Rdma),
        Self::NoDevices(Kind::Fpga),
        Self::Devices(Kind::Gpu),
        Self::Devices(Kind::Rdma),
        Self::Devices(Kind::Fpga),
        Self::NoVirtualFunctions(Kind::Gpu),
        Self::NoVirtualFunctions(Kind::Rdma),
        Self::NoVirtualFunctions(Kind::Fpga),
        Self::Joint,
        Self::Template,
        Self::NoPartitions,
        Self::PartitionSize,
        Self::Partitions,
        Self::NoTopology,
        Self::MultiShared,
        Self::Scope,
        Self::Gpus,
        Self::NumaNodes,
        Self::Isolation,
    ];

    /// Whether the removal of pods may help.
    pub fn is_resolvable(self) -> bool {
        matches!(self, Self::Devices(_) | Self::Joint | Self::Partitions | Self::Scope | Self::Gpus)
    }

    /// Its code and words.
    pub fn reason(self) -> Reason {
        let code = match self {
            Self::NoDevices(_) | Self::Devices(_) | Self::NoVirtualFunctions(_) | Self::Gpus | Self::NumaNodes => {
                ReasonCode::DeviceUnavailable
            }
            Self::Joint => ReasonCode::DeviceJointConflict,
            Self::Template => ReasonCode::DeviceTemplateMissing,
            Self::NoPartitions | Self::NoTopology => ReasonCode::DeviceTopologyMissing,
            Self::Partitions | Self::Scope => ReasonCode::DevicePartitionFragmented,
            Self::PartitionSize | Self::MultiShared => ReasonCode::DeviceRequestInvalid,
            Self::Isolation => ReasonCode::DeviceNotShareable,
        };
        let reason = code.reason(self.to_string());
        self.lacks().map_or(reason.clone(), |kind| reason.with("device", kind))
    }

    /// The kind of device of which there is too little.
    pub fn lacks(self) -> Option<Kind> {
        match self {
            Self::NoDevices(kind) | Self::Devices(kind) | Self::NoVirtualFunctions(kind) => Some(kind),
            Self::Gpus | Self::Partitions | Self::Scope => Some(Kind::Gpu),
            _ => None,
        }
    }

    /// The same where so many reservations have too little, of which the pod needs one: each says so.
    pub fn within(self, reservations: usize) -> Vec<Reason> {
        let reason = self.reason();
        if reservations == 0 || self == Self::NumaNodes {
            return reason.into();
        }
        vec![Reason { text: format!("Reservation(s) {reason}"), ..reason }; reservations]
    }

    /// As the engine keeps it.
    pub fn refusal(self) -> Refusal {
        let number = (0..).zip(Self::ALL).find(|(_, known)| *known == self).map_or(0, |(number, _)| number);
        Refusal { reason: number, resolvable: self.is_resolvable(), operand: 0 }
    }

    /// The one that the engine kept as this reason.
    pub fn of(reason: u16) -> Option<Self> {
        Self::ALL.get(usize::from(reason)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_keeps_each_of_them() {
        for refused in Refused::ALL {
            let kept = refused.refusal();
            assert_eq!((Refused::of(kept.reason), kept.resolvable), (Some(refused), refused.is_resolvable()));
        }
    }
}
