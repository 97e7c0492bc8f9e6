//! Features that strategies belong to, and which of them are on.

use std::fmt;

/// A feature gate of the agent that strategies look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    BeCpuSuppress,
    BeCpuManager,
    BeCpuEvict,
    CpuAllocatableEvict,
    CpuEvict,
    BeMemoryEvict,
    MemoryAllocatableEvict,
    MemoryEvict,
    CpuBurst,
    CgroupReconcile,
    RdtResctrl,
    BlkIoReconcile,
    SystemConfig,
    CpuNormalization,
}

/// The features that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u32);

impl Feature {
    pub const ALL: [Self; 14] = [
        Self::BeCpuSuppress,
        Self::BeCpuManager,
        Self::BeCpuEvict,
        Self::CpuAllocatableEvict,
        Self::CpuEvict,
        Self::BeMemoryEvict,
        Self::MemoryAllocatableEvict,
        Self::MemoryEvict,
        Self::CpuBurst,
        Self::CgroupReconcile,
        Self::RdtResctrl,
        Self::BlkIoReconcile,
        Self::SystemConfig,
        Self::CpuNormalization,
    ];

    /// The name of the gate, as it stands in flags, annotations and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeCpuSuppress => "BECPUSuppress",
            Self::BeCpuManager => "BECPUManager",
            Self::BeCpuEvict => "BECPUEvict",
            Self::CpuAllocatableEvict => "CPUAllocatableEvict",
            Self::CpuEvict => "CPUEvict",
            Self::BeMemoryEvict => "BEMemoryEvict",
            Self::MemoryAllocatableEvict => "MemoryAllocatableEvict",
            Self::MemoryEvict => "MemoryEvict",
            Self::CpuBurst => "CPUBurst",
            Self::CgroupReconcile => "CgroupReconcile",
            Self::RdtResctrl => "RdtResctrl",
            Self::BlkIoReconcile => "BlkIOReconcile",
            Self::SystemConfig => "SystemConfig",
            Self::CpuNormalization => "CPUNormalization",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Default for Features {
    /// Those that are on by default.
    fn default() -> Self {
        Self::none().with(Feature::BeCpuSuppress).with(Feature::CpuBurst).with(Feature::RdtResctrl)
    }
}

impl Features {
    pub const fn none() -> Self {
        Self(0)
    }

    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | 1 << feature as u32)
    }

    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(1 << feature as u32))
    }

    pub const fn is_on(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_strategies_are_on_by_default() {
        let on: Vec<_> = Feature::ALL.into_iter().filter(|feature| Features::default().is_on(*feature)).collect();
        assert_eq!(on, [Feature::BeCpuSuppress, Feature::CpuBurst, Feature::RdtResctrl]);
        assert!(!Features::default().without(Feature::CpuBurst).is_on(Feature::CpuBurst));
    }
}
