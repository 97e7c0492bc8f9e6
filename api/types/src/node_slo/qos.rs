//! What each QoS class gets of CPU, memory, caches, disks and network.

use koord_resource::{IntOrString, Schema};
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// What each QoS class gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQosStrategy {
    /// By which means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<ResourceQosPolicies>,
    /// Pods of class LSR and LSE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lsr_class: Option<ResourceQos>,
    /// Pods of class LS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ls_class: Option<ResourceQos>,
    /// Pods of class BE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub be_class: Option<ResourceQos>,
    /// Daemons of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_class: Option<ResourceQos>,
    /// The whole node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_root: Option<ResourceQos>,
}

/// By which means the kernel is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceQosPolicies {
    /// By which means CPU is shared: `groupIdentity` or `coreSched`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_policy: Option<CpuPolicy>,
    /// By which means the network is shared: `tc` or `terway-qos`.
    #[serde(rename = "netQOSPolicy", default, skip_serializing_if = "word::is_unset")]
    pub net_qos_policy: Option<NetQosPolicy>,
}

words! {
    /// By which means CPU is shared.
    pub open enum CpuPolicy {
        /// Group identities of the Anolis kernel.
        GroupIdentity = "groupIdentity",
        /// Core scheduling of the Linux kernel.
        CoreSched = "coreSched",
    }
}

words! {
    /// By which means the network is shared.
    pub open enum NetQosPolicy {
        /// Traffic control of the Linux kernel.
        Tc = "tc",
        /// The agent of Terway.
        TerwayQos = "terway-qos",
    }
}

/// What one class gets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ResourceQos {
    /// CPU.
    #[serde(rename = "cpuQOS", default, skip_serializing_if = "Option::is_none")]
    pub cpu_qos: Option<CpuQosCfg>,
    /// Memory.
    #[serde(rename = "memoryQOS", default, skip_serializing_if = "Option::is_none")]
    pub memory_qos: Option<MemoryQosCfg>,
    /// Disks.
    #[serde(rename = "blkioQOS", default, skip_serializing_if = "Option::is_none")]
    pub blkio_qos: Option<BlkIoQosCfg>,
    /// Caches and memory bandwidth.
    #[serde(rename = "resctrlQOS", default, skip_serializing_if = "Option::is_none")]
    pub resctrl_qos: Option<ResctrlQosCfg>,
    /// Network.
    #[serde(rename = "networkQOS", default, skip_serializing_if = "Option::is_none")]
    pub network_qos: Option<NetworkQosCfg>,
}

/// How CPU is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CpuQosCfg {
    /// Whether this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Group identity, from -1 (gives way) to 2 (goes first).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_identity: Option<i64>,
    /// 1 to run only on CPUs that would idle, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_idle: Option<i64>,
    /// Whether others are driven from the sibling of a CPU that this class runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_expeller: Option<bool>,
}

/// How memory is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQosCfg {
    /// Whether this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Memory that is never reclaimed, in percent of the request.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_limit_percent: Option<i64>,
    /// Memory that is reclaimed only when nothing else is left, in percent of the request.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_limit_percent: Option<i64>,
    /// Use, in percent of the limit, above which allocations are slowed down; 0 for never.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling_percent: Option<i64>,
    /// Use, in percent of the limit, above which memory is reclaimed in the background; 0 for never.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_ratio: Option<i64>,
    /// How much is reclaimed in the background at a time, in thousandths of the limit.
    #[koord(minimum = 1, maximum = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_scale_permill: Option<i64>,
    /// How much later (below 0: less, above 0: earlier) the node's reclaim reaches this class, in percent of the watermarks.
    #[koord(minimum = -25, maximum = 50)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wmark_min_adj: Option<i64>,
    /// 1 to order the killing of containers by `priority`, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_enable: Option<i64>,
    /// Priority when memory runs out, from 0 (killed first) to 12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// 1 to kill all processes of a container together, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oom_kill_group: Option<i64>,
    /// Whether memory that only caches files is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_enable: Option<bool>,
    /// Limit of memory that only caches files, in percent of the memory limit.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_percent: Option<i64>,
    /// Limit of memory that only caches files, in bytes; goes before the percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_size: Option<i64>,
    /// Whether the one who exceeds that limit has to reclaim itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_reclaim_sync: Option<bool>,
}

/// How disks are shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct BlkIoQosCfg {
    /// Whether this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// One entry per disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockCfg>,
}

/// How one disk is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct BlockCfg {
    /// Name of the device, volume group or volume.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What the name names: `device`, `volumegroup` or `podvolume`.
    #[serde(rename = "type", default, skip_serializing_if = "word::is_unset")]
    pub type_: Option<BlockType>,
    /// What is guaranteed and what is limited.
    #[serde(rename = "ioCfg", default)]
    pub io_cfg: IoCfg,
}

words! {
    /// What the name of a disk names.
    pub open enum BlockType {
        /// A block device, such as `/dev/vda`.
        Device = "device",
        /// A volume group of LVM.
        VolumeGroup = "volumegroup",
        /// A volume of the pod.
        PodVolume = "podvolume",
    }
}

/// Limits and shares on one disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct IoCfg {
    /// Most reads per second; 0 for no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "readIOPS", default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<i64>,
    /// Most writes per second; 0 for no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "writeIOPS", default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<i64>,
    /// Most bytes read per second; 0 for no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "readBPS", default, skip_serializing_if = "Option::is_none")]
    pub read_bps: Option<i64>,
    /// Most bytes written per second; 0 for no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "writeBPS", default, skip_serializing_if = "Option::is_none")]
    pub write_bps: Option<i64>,
    /// Weight among those who share the disk, in percent.
    #[koord(minimum = 1, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_weight_percent: Option<i64>,
    /// Time, in microseconds, within which reads should be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency: Option<i64>,
    /// Time, in microseconds, within which writes should be served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<i64>,
    /// Share of reads, in percent, that should be served within `readLatency`.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_percent: Option<i64>,
    /// Share of writes, in percent, that should be served within `writeLatency`.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency_percent: Option<i64>,
    /// Whether the model below describes the disk, instead of what the kernel measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_user_model: Option<bool>,
    /// Bytes that the disk can read per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadBPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_bps: Option<i64>,
    /// Bytes that the disk can write per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteBPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_bps: Option<i64>,
    /// Reads in sequence that the disk can do per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadSeqIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_seq_iops: Option<i64>,
    /// Writes in sequence that the disk can do per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteSeqIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_seq_iops: Option<i64>,
    /// Random reads that the disk can do per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelReadRandIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_read_rand_iops: Option<i64>,
    /// Random writes that the disk can do per second.
    #[koord(minimum = 1)]
    #[serde(rename = "modelWriteRandIOPS", default, skip_serializing_if = "Option::is_none")]
    pub model_write_rand_iops: Option<i64>,
}

/// How caches and memory bandwidth are shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ResctrlQosCfg {
    /// Whether this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Where the class's part of the last-level cache begins, in percent of its ways.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cat_range_start_percent: Option<i64>,
    /// Where the class's part of the last-level cache ends, in percent of its ways.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cat_range_end_percent: Option<i64>,
    /// Memory bandwidth of the class, in percent.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mba_percent: Option<i64>,
}

/// How the network is shared. An integer is a percentage of the node's bandwidth from 0 to 100, a text is bits per
/// second as a quantity such as `50M`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkQosCfg {
    /// Whether this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Guaranteed bandwidth to the class.
    #[koord(default = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_request: Option<IntOrString>,
    /// Most bandwidth to the class.
    #[koord(default = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_limit: Option<IntOrString>,
    /// Guaranteed bandwidth from the class.
    #[koord(default = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_request: Option<IntOrString>,
    /// Most bandwidth from the class.
    #[koord(default = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_limit: Option<IntOrString>,
}
