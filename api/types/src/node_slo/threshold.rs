//! Thresholds of node usage at which BE pods are suppressed or evicted.

use koord_resource::{
    Mutate, Schema, Validate,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};

use super::ordered::{self, Ordered};
use crate::word::{self, words};

/// Thresholds of node usage at which BE pods are suppressed or evicted. Percentages are of the node's capacity unless
/// stated otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
#[koord(check(thresholds_are_ordered))]
pub struct ResourceThresholdStrategy {
    /// Whether suppression and eviction are enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,

    /// Node CPU usage, in percent, above which BE pods are suppressed.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_suppress_threshold_percent: Option<i64>,
    /// Minimum share of the node's CPUs, in percent, that suppressed BE pods keep.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_suppress_min_percent: Option<i64>,
    /// How BE pods are suppressed: `cpuset` binds them to fewer CPUs, `cfsQuota` lowers their CFS quota.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_suppress_policy: Option<CpuSuppressPolicy>,

    /// Node memory usage, in percent, above which BE pods are evicted.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_evict_threshold_percent: Option<i64>,
    /// Node memory usage, in percent, at which eviction stops. Defaults to `memoryEvictThresholdPercent` - 2.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_evict_lower_percent: Option<i64>,
    /// Requested batch and mid memory, in percent of the allocatable amount, above which their pods are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allocatable_evict_threshold_percent: Option<i64>,
    /// Requested batch and mid memory, in percent of the allocatable amount, at which eviction stops.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_allocatable_evict_lower_percent: Option<i64>,

    /// CPU satisfaction of BE pods (usable CPU over requested CPU), in percent, at which eviction stops.
    #[koord(admission(minimum = 0, maximum = 100))]
    #[serde(rename = "cpuEvictBESatisfactionUpperPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_satisfaction_upper_percent: Option<i64>,
    /// CPU satisfaction of BE pods, in percent, below which they are evicted.
    #[koord(admission(minimum = 0, maximum = 100))]
    #[serde(rename = "cpuEvictBESatisfactionLowerPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_satisfaction_lower_percent: Option<i64>,
    /// CPU usage of BE pods, in percent of their usable CPU, below which they are not evicted.
    #[koord(admission(minimum = 0, maximum = 100))]
    #[serde(rename = "cpuEvictBEUsageThresholdPercent", default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_be_usage_threshold_percent: Option<i64>,
    /// How many seconds CPU satisfaction must be low before BE pods are evicted.
    #[koord(admission(minimum = 0, exclusive_minimum))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_time_window_seconds: Option<i64>,
    /// Which limit CPU satisfaction is computed from: `evictByRealLimit` the suppressed CPU limit, `evictByAllocatable` the
    /// allocatable batch CPU.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub cpu_evict_policy: Option<CpuEvictPolicy>,
    /// Node CPU usage, in percent, above which pods are evicted.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_threshold_percent: Option<i64>,
    /// Node CPU usage, in percent, at which eviction stops.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_evict_lower_percent: Option<i64>,
    /// Requested batch and mid CPU, in percent of the allocatable amount, above which their pods are evicted.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocatable_evict_threshold_percent: Option<i64>,
    /// Requested batch and mid CPU, in percent of the allocatable amount, at which eviction stops.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocatable_evict_lower_percent: Option<i64>,

    /// Pods up to this priority may be evicted because of node usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evict_enabled_priority_threshold: Option<i32>,
    /// Pods up to this priority may be evicted because of requests above the allocatable amount.
    #[koord(admission(minimum = 0, maximum = 7999))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocatable_evict_priority_threshold: Option<i32>,
}

words! {
    /// How BE pods are suppressed.
    pub open enum CpuSuppressPolicy {
        /// They are bound to fewer CPUs.
        Cpuset = "cpuset",
        /// Their CFS quota is lowered.
        CfsQuota = "cfsQuota",
    }
}

words! {
    /// Which limit the CPU satisfaction of BE pods is computed from.
    pub open enum CpuEvictPolicy {
        /// The suppressed CPU limit.
        EvictByRealLimit = "evictByRealLimit",
        /// The allocatable batch CPU.
        EvictByAllocatable = "evictByAllocatable",
    }
}

// === attached rules ===

impl ResourceThresholdStrategy {
    /// Thresholds at which something begins, each with the lower one at which it ends. The satisfaction of BE pods is the
    /// other way round: eviction ends at the upper one.
    pub const ORDERED: [Ordered<Self>; 5] = [
        Ordered {
            upper: ("memoryEvictThresholdPercent", |strategy| strategy.memory_evict_threshold_percent),
            lower: ("memoryEvictLowerPercent", |strategy| strategy.memory_evict_lower_percent),
        },
        Ordered {
            upper: ("memoryAllocatableEvictThresholdPercent", |strategy| {
                strategy.memory_allocatable_evict_threshold_percent
            }),
            lower: ("memoryAllocatableEvictLowerPercent", |strategy| strategy.memory_allocatable_evict_lower_percent),
        },
        Ordered {
            upper: ("cpuEvictBESatisfactionUpperPercent", |strategy| strategy.cpu_evict_be_satisfaction_upper_percent),
            lower: ("cpuEvictBESatisfactionLowerPercent", |strategy| strategy.cpu_evict_be_satisfaction_lower_percent),
        },
        Ordered {
            upper: ("cpuEvictThresholdPercent", |strategy| strategy.cpu_evict_threshold_percent),
            lower: ("cpuEvictLowerPercent", |strategy| strategy.cpu_evict_lower_percent),
        },
        Ordered {
            upper: ("cpuAllocatableEvictThresholdPercent", |strategy| strategy.cpu_allocatable_evict_threshold_percent),
            lower: ("cpuAllocatableEvictLowerPercent", |strategy| strategy.cpu_allocatable_evict_lower_percent),
        },
    ];
}

fn thresholds_are_ordered(strategy: &ResourceThresholdStrategy, at: &Path<'_>, errors: &mut Errors) {
    ordered::check(&ResourceThresholdStrategy::ORDERED, strategy, at, errors);
}
