//! Switches of the kernel that exclude each other: group identity (Anolis) and core scheduling.

use koord_koordlet_framework::Reason;

/// Below `/proc/sys`: whether `cpu.bvt_warp_ns` has an effect.
pub const SCHED_GROUP_IDENTITY: &str = "kernel/sched_group_identity_enabled";
/// Below `/proc/sys`: whether core scheduling may be used, on kernels that have this switch.
pub const SCHED_CORE: &str = "kernel/sched_core";

/// What the switches say now, and what the kernel can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelSwitches {
    /// `sched_group_identity_enabled`; `None` where the kernel has no such file.
    pub group_identity: Option<bool>,
    /// `sched_core`; `None` where the kernel has no such file.
    pub sched_core: Option<bool>,
    /// Whether the cgroup of all pods has `cpu.bvt_warp_ns`.
    pub has_group_identity_file: bool,
    pub core_sched: CoreSchedSupport,
}

/// Whether the kernel schedules cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoreSchedSupport {
    /// `prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET)` succeeded.
    Supported,
    /// It failed.
    #[default]
    Unsupported,
}

/// A switch that must be set before the constraints that depend on it are given. Who sets it reads the switches anew and computes the rules again at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The file below `/proc/sys`.
    pub file: &'static str,
    pub value: bool,
    pub reason: Reason,
}

impl Switch {
    /// The switch unless it is set already or is not there.
    pub(crate) fn unless(file: &'static str, now: Option<bool>, value: bool, reason: &Reason) -> Option<Self> {
        now.filter(|now| *now != value).map(|_| Self { file, value, reason: reason.clone() })
    }
}
