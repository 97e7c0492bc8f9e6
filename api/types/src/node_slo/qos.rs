//! Isolation of CPU, memory, caches, disks and network for each QoS class.

use koord_resource::{
    IntOrString, Mutate, Schema, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};

use super::ordered::{self, Ordered};
use crate::word::{self, words};

/// Resource isolation of each QoS class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQosStrategy {
    /// The mechanisms that enforce isolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<ResourceQosPolicies>,
    /// Isolation of LSR and LSE pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsr_class: Option<ResourceQos>,
    /// Isolation of LS pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ls_class: Option<ResourceQos>,
    /// Isolation of BE pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub be_class: Option<ResourceQos>,
    /// Isolation of system daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_class: Option<ResourceQos>,
    /// Isolation of the root cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_root: Option<ResourceQos>,
}

/// The mechanisms that enforce isolation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQosPolicies {
    /// The mechanism of CPU isolation: `groupIdentity` or `coreSched`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_policy: Option<CpuPolicy>,
    /// The mechanism of network isolation: `tc` or `terway-qos`.
    #[serde(rename = "netQOSPolicy", default, skip_serializing_if = "word::is_unset")]
    pub net_qos_policy: Option<NetQosPolicy>,
}

words! {
    /// A mechanism of CPU isolation.
    pub open enum CpuPolicy {
        /// Group identities of the Anolis kernel.
        GroupIdentity = "groupIdentity",
        /// Core scheduling of the Linux kernel.
        CoreSched = "coreSched",
    }
}

words! {
    /// A mechanism of network isolation.
    pub open enum NetQosPolicy {
        /// Traffic control of the Linux kernel.
        Tc = "tc",
        /// The agent of Terway.
        TerwayQos = "terway-qos",
    }
}

/// Resource isolation of one QoS class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct ResourceQos {
    /// CPU isolation.
    #[serde(rename = "cpuQOS", default, skip_serializing_if = "Option::is_none")]
    pub cpu_qos: Option<CpuQosCfg>,
    /// Memory isolation.
    #[serde(rename = "memoryQOS", default, skip_serializing_if = "Option::is_none")]
    pub memory_qos: Option<MemoryQosCfg>,
    /// Block I/O isolation.
    #[serde(rename = "blkioQOS", default, skip_serializing_if = "Option::is_none")]
    pub blkio_qos: Option<BlkIoQosCfg>,
    /// Last-level cache and memory bandwidth isolation (resctrl).
    #[serde(rename = "resctrlQOS", default, skip_serializing_if = "Option::is_none")]
    pub resctrl_qos: Option<ResctrlQosCfg>,
    /// Network isolation.
    #[serde(rename = "networkQOS", default, skip_serializing_if = "Option::is_none")]
    pub network_qos: Option<NetworkQosCfg>,
}

/// CPU isolation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct CpuQosCfg {
    /// Whether this isolation is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Group identity (`cpu.bvt_warp_ns`), from -1 (lowest scheduling priority) to 2 (highest).
    #[koord(admission(minimum = -1, maximum = 2))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_identity: Option<i64>,
    /// `cpu.idle`: 1 to schedule the class only on otherwise idle CPUs, else 0.
    #[koord(admission(minimum = 0, maximum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_idle: Option<i64>,
    /// Whether lower classes are expelled from the sibling hyper-thread of a CPU that runs this class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_expeller: Option<bool>,
}

/// Memory isolation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQosCfg {
    /// Whether this isolation is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// `memory.min`: memory that is never reclaimed, in percent of the request.
    #[koord(minimum = 0, admission(maximum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_limit_percent: Option<i64>,
    /// `memory.low`: memory that is reclaimed last, in percent of the request.
    #[koord(minimum = 0, admission(maximum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_limit_percent: Option<i64>,
    /// `memory.high`: usage, in percent of the limit, above which allocations are throttled; 0 disables throttling.
    #[koord(minimum = 0, admission(maximum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling_percent: Option<i64>,
    /// `memory.wmark_ratio`: usage, in percent of the limit, above which memory is reclaimed in the background; 0 disables it.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_ratio: Option<i64>,
    /// `memory.wmark_scale_factor`: memory to reclaim in the background at a time, in 1/1000 of the limit.
    #[koord(minimum = 1, maximum = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_scale_permill: Option<i64>,
    /// `memory.wmark_min_adj`: adjustment of the global minimum watermark for this class, in percent; below 0 reclaim starts
    /// later, above 0 earlier.
    #[koord(minimum = -25, maximum = 50)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_min_adj: Option<i64>,
    /// 1 to kill containers in order of `priority` when the node is out of memory, else 0.
    #[koord(admission(minimum = 0, maximum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_enable: Option<i64>,
    /// Out-of-memory priority, from 0 (killed first) to 12.
    #[koord(admission(minimum = 0, maximum = 12))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// `memory.oom.group`: 1 to kill all processes of a container together, else 0.
    #[koord(admission(minimum = 0, maximum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kill_group: Option<i64>,
    /// Whether the page cache is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_enable: Option<bool>,
    /// Limit of the page cache, in percent of the memory limit.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_percent: Option<i64>,
    /// Limit of the page cache, in bytes. Takes precedence over the percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_size: Option<i64>,
    /// Whether the page cache is reclaimed synchronously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_reclaim_sync: Option<bool>,
}

/// Block I/O isolation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct BlkIoQosCfg {
    /// Whether this isolation is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// The block devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockCfg>,
}

/// Block I/O isolation on one block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct BlockCfg {
    /// Name of the block device, volume group or pod volume.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What `name` refers to: `device`, `volumegroup` or `podvolume`.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<BlockType>,
    /// I/O limits and weights.
    #[serde(rename = "ioCfg", default)]
    pub io_cfg: IoCfg,
}

words! {
    /// What the name of a block device refers to.
    pub open enum BlockType {
        /// A block device, such as `/dev/vda`.
        Device = "device",
        /// An LVM volume group.
        VolumeGroup = "volumegroup",
        /// A volume of the pod.
        PodVolume = "podvolume",
    }
}

/// I/O limits and weights on one block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct IoCfg {
    /// Maximum read operations per second; 0 sets no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "readIOPS", default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<i64>,
    /// Maximum write operations per second; 0 sets no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "writeIOPS", default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<i64>,
    /// Maximum bytes read per second; 0 sets no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "readBPS", default, skip_serializing_if = "Option::is_none")]
    pub read_bps: Option<i64>,
    /// Maximum bytes written per second; 0 sets no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "writeBPS", default, skip_serializing_if = "Option::is_none")]
    pub write_bps: Option<i64>,
    /// I/O weight, in percent (`blkio.cost.weight`).
    #[koord(minimum = 1, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_weight_percent: Option<i64>,
    /// Read latency target, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency: Option<i64>,
    /// Write latency target, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<i64>,
    /// Percentile of reads that must meet `readLatency`.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_percent: Option<i64>,
    /// Percentile of writes that must meet `writeLatency`.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency_percent: Option<i64>,
    /// Whether the I/O cost model below is used instead of the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_user_model: Option<bool>,
    /// Cost model: bytes read per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadBPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_bps: Option<i64>,
    /// Cost model: bytes written per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteBPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_bps: Option<i64>,
    /// Cost model: sequential read operations per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadSeqIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_seq_iops: Option<i64>,
    /// Cost model: sequential write operations per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteSeqIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_seq_iops: Option<i64>,
    /// Cost model: random read operations per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadRandIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_rand_iops: Option<i64>,
    /// Cost model: random write operations per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteRandIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_rand_iops: Option<i64>,
}

/// Last-level cache and memory bandwidth isolation (resctrl).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
#[koord(check(range_is_ordered))]
pub struct ResctrlQosCfg {
    /// Whether this isolation is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Start of the class's last-level cache range, in percent of the cache ways.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cat_range_start_percent: Option<i64>,
    /// End of the class's last-level cache range, in percent of the cache ways.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cat_range_end_percent: Option<i64>,
    /// Memory bandwidth of the class (MBA), in percent.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mba_percent: Option<i64>,
}

/// Network isolation. An integer is a percentage of the node's bandwidth from 0 to 100, a string is bits per second as a
/// quantity such as `50M`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct NetworkQosCfg {
    /// Whether this isolation is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Guaranteed ingress bandwidth.
    #[koord(default = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_request: Option<IntOrString>,
    /// Maximum ingress bandwidth.
    #[koord(default = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_limit: Option<IntOrString>,
    /// Guaranteed egress bandwidth.
    #[koord(default = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_request: Option<IntOrString>,
    /// Maximum egress bandwidth.
    #[koord(default = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_limit: Option<IntOrString>,
}

// === attached rules ===

impl ResctrlQosCfg {
    /// The end of the cache range lies behind its start.
    pub const ORDERED: [Ordered<Self>; 1] = [Ordered {
        upper: ("catRangeEndPercent", |config| config.cat_range_end_percent),
        lower: ("catRangeStartPercent", |config| config.cat_range_start_percent),
    }];
}

fn range_is_ordered(config: &ResctrlQosCfg, at: &Path<'_>, errors: &mut Errors) {
    ordered::check(&ResctrlQosCfg::ORDERED, config, at, errors);
}
