//! When best-effort pods get fewer CPUs, and when they are evicted.

use koord_resource::Schema;
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// When best-effort pods get fewer CPUs, and when they are evicted. Percentages are of the node's capacity unless
/// they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceThresholdStrategy {
    /// Whether any of this is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,

    /// Use of CPU by the node, in percent, above which best-effort pods get fewer CPUs.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_suppress_threshold_percent: Option<i64>,
    /// The share of the node's CPUs, in percent, that best-effort pods keep however much others use.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_suppress_min_percent: Option<i64>,
    /// How best-effort pods get fewer CPUs: `cpuset` binds them to fewer, `cfsQuota` gives them less time on all.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_suppress_policy: Option<CpuSuppressPolicy>,

    /// Use of memory by the node, in percent, above which best-effort pods are evicted.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_evict_threshold_percent: Option<i64>,
    /// Use of memory, in percent, down to which they are evicted. Absent is 2 below the threshold.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_evict_lower_percent: Option<i64>,
    /// Requests of batch and mid memory, in percent of what is allocatable, above which their pods are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allocatable_evict_threshold_percent: Option<i64>,
    /// Requests, in percent of what is allocatable, down to which they are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allocatable_evict_lower_percent: Option<i64>,

    /// Share of the CPU that best-effort pods request which they get, in percent, up to which they are evicted.
    #[serde(rename = "cpuEvictBESatisfactionUpperPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_satisfaction_upper_percent: Option<i64>,
    /// Share of the CPU that best-effort pods request which they get, in percent, below which they are evicted.
    #[serde(rename = "cpuEvictBESatisfactionLowerPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_satisfaction_lower_percent: Option<i64>,
    /// Use by best-effort pods of the CPU that they have, in percent, below which they are not evicted.
    #[serde(rename = "cpuEvictBEUsageThresholdPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_usage_threshold_percent: Option<i64>,
    /// For how many seconds CPU must be short before best-effort pods are evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_time_window_seconds: Option<i64>,
    /// Whether the CPU that best-effort pods really have (`evictByRealLimit`), or what is allocatable for them
    /// (`evictByAllocatable`), is compared with their requests.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_evict_policy: Option<CpuEvictPolicy>,
    /// Use of CPU by the node, in percent, above which pods are evicted.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_threshold_percent: Option<i64>,
    /// Use of CPU, in percent, down to which they are evicted.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_lower_percent: Option<i64>,
    /// Requests of batch and mid CPU, in percent of what is allocatable, above which their pods are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocatable_evict_threshold_percent: Option<i64>,
    /// Requests, in percent of what is allocatable, down to which they are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocatable_evict_lower_percent: Option<i64>,

    /// Priority of pods up to which they may be evicted for the use of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict_enabled_priority_threshold: Option<i32>,
    /// Priority of pods up to which they may be evicted for requests above what is allocatable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocatable_evict_priority_threshold: Option<i32>,
}

words! {
    /// How best-effort pods get fewer CPUs.
    pub open enum CpuSuppressPolicy {
        /// They are bound to fewer CPUs.
        Cpuset = "cpuset",
        /// They get less time on all CPUs.
        CfsQuota = "cfsQuota",
    }
}

words! {
    /// What requests of best-effort pods are compared with.
    pub open enum CpuEvictPolicy {
        /// With the CPU that they really have.
        EvictByRealLimit = "evictByRealLimit",
        /// With the CPU that is allocatable for them.
        EvictByAllocatable = "evictByAllocatable",
    }
}
