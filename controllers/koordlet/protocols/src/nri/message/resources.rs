//! Resources of pods and containers. A value that is not set is absent, unlike one that is 0.

use std::collections::BTreeMap;

/// A number that can be absent.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalI64 {
    /// The number.
    #[prost(int64, tag = "1")]
    pub value: i64,
}

/// A number that can be absent.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalU64 {
    /// The number.
    #[prost(uint64, tag = "1")]
    pub value: u64,
}

/// A number that can be absent; a file mode among others.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalU32 {
    /// The number.
    #[prost(uint32, tag = "1")]
    pub value: u32,
}

/// A truth value that can be absent.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct OptionalBool {
    /// The truth value.
    #[prost(bool, tag = "1")]
    pub value: bool,
}

/// A text that can be absent.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OptionalString {
    /// The text.
    #[prost(string, tag = "1")]
    pub value: String,
}

/// Texts that can be absent.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OptionalStrings {
    /// The texts.
    #[prost(string, repeated, tag = "1")]
    pub value: Vec<String>,
}

macro_rules! from_value {
    ($($optional:ty: $value:ty),*) => {$(
        impl From<$value> for $optional {
            fn from(value: $value) -> Self {
                Self { value }
            }
        }
    )*};
}

from_value!(OptionalI64: i64, OptionalU64: u64, OptionalU32: u32, OptionalBool: bool, OptionalString: String, OptionalStrings: Vec<String>);

/// Resources of a pod or container.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxResources {
    /// Memory.
    #[prost(message, optional, tag = "1")]
    pub memory: Option<LinuxMemory>,
    /// CPU.
    #[prost(message, optional, tag = "2")]
    pub cpu: Option<LinuxCpu>,
    /// Huge pages, by page size.
    #[prost(message, repeated, tag = "3")]
    pub hugepage_limits: Vec<HugepageLimit>,
    /// Class of block I/O.
    #[prost(message, optional, tag = "4")]
    pub blockio_class: Option<OptionalString>,
    /// Class of cache and memory bandwidth: a group of resctrl.
    #[prost(message, optional, tag = "5")]
    pub rdt_class: Option<OptionalString>,
    /// Files of cgroup v2 by name.
    #[prost(btree_map = "string, string", tag = "6")]
    pub unified: BTreeMap<String, String>,
    /// Processes.
    #[prost(message, optional, tag = "8")]
    pub pids: Option<LinuxPids>,
}

/// Memory; sizes in bytes, −1 for no limit.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct LinuxMemory {
    /// Limit.
    #[prost(message, optional, tag = "1")]
    pub limit: Option<OptionalI64>,
    /// Soft limit.
    #[prost(message, optional, tag = "2")]
    pub reservation: Option<OptionalI64>,
    /// Limit of memory and swap together.
    #[prost(message, optional, tag = "3")]
    pub swap: Option<OptionalI64>,
    /// Limit of memory of the kernel.
    #[prost(message, optional, tag = "4")]
    pub kernel: Option<OptionalI64>,
    /// Limit of memory of the kernel for TCP.
    #[prost(message, optional, tag = "5")]
    pub kernel_tcp: Option<OptionalI64>,
    /// Tendency to swap, 0 to 100.
    #[prost(message, optional, tag = "6")]
    pub swappiness: Option<OptionalU64>,
    /// Whether the OOM killer is off.
    #[prost(message, optional, tag = "7")]
    pub disable_oom_killer: Option<OptionalBool>,
    /// Whether usage of children counts.
    #[prost(message, optional, tag = "8")]
    pub use_hierarchy: Option<OptionalBool>,
}

/// CPU; times in microseconds.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxCpu {
    /// Weight, 1024 for one CPU.
    #[prost(message, optional, tag = "1")]
    pub shares: Option<OptionalU64>,
    /// CPU time per period, −1 for no limit.
    #[prost(message, optional, tag = "2")]
    pub quota: Option<OptionalI64>,
    /// The period.
    #[prost(message, optional, tag = "3")]
    pub period: Option<OptionalU64>,
    /// Real-time CPU time per period.
    #[prost(message, optional, tag = "4")]
    pub realtime_runtime: Option<OptionalI64>,
    /// The period of real-time CPU time.
    #[prost(message, optional, tag = "5")]
    pub realtime_period: Option<OptionalU64>,
    /// CPUs as a list such as `0-3,8`; empty when it is not set.
    #[prost(string, tag = "6")]
    pub cpus: String,
    /// NUMA nodes as a list; empty when it is not set.
    #[prost(string, tag = "7")]
    pub mems: String,
}

/// Limit of huge pages of one size.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HugepageLimit {
    /// Size such as `2MB`.
    #[prost(string, tag = "1")]
    pub page_size: String,
    /// Bytes.
    #[prost(uint64, tag = "2")]
    pub limit: u64,
}

/// Limit of processes.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct LinuxPids {
    /// Processes.
    #[prost(int64, tag = "1")]
    pub limit: i64,
}
