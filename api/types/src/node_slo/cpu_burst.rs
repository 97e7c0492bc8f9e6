//! When containers may use more CPU than their limit.

use koord_resource::Schema;
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// When containers may use more CPU than their limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CpuBurstStrategy {
    /// By which means: `none`, `cpuBurstOnly`, `cfsQuotaBurstOnly` or `auto` for both.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub policy: Option<CpuBurstPolicy>,
    /// CPU time that a container may save up while it uses less, in percent of its limit.
    #[koord(minimum = 0, maximum = 10000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_burst_percent: Option<i64>,
    /// How far the limit may be raised, in percent of the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cfs_quota_burst_percent: Option<i64>,
    /// For how many seconds the limit may stay raised; -1 for as long as needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cfs_quota_burst_period_seconds: Option<i64>,
    /// Use of the shared CPUs, in percent, above which no limit is raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pool_threshold_percent: Option<i64>,
}

words! {
    /// By which means containers may use more CPU than their limit.
    pub open enum CpuBurstPolicy {
        /// By none.
        None = "none",
        /// They save up time that they did not use.
        CpuBurstOnly = "cpuBurstOnly",
        /// Their limit is raised while they are throttled.
        CfsQuotaBurstOnly = "cfsQuotaBurstOnly",
        /// By both.
        Auto = "auto",
    }
}
