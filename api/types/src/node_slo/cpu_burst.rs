//! When containers may burst above their CPU limit.

use koord_resource::{Mutate, Schema, Validate};
use serde::{Deserialize, Serialize};

use crate::word::{self, words};

/// When containers may burst above their CPU limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct CpuBurstStrategy {
    /// How containers may burst: `none`, `cpuBurstOnly`, `cfsQuotaBurstOnly` or `auto` for both.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub policy: Option<CpuBurstPolicy>,
    /// CPU time that a container may accumulate while below its limit (`cpu.cfs_burst_us`), in percent of the limit.
    #[koord(minimum = 0, maximum = 10000, admission(minimum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_burst_percent: Option<i64>,
    /// Maximum of the raised CFS quota, in percent of the limit.
    #[koord(admission(minimum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cfs_quota_burst_percent: Option<i64>,
    /// How many seconds the CFS quota may stay raised; -1 sets no limit.
    #[koord(admission(minimum = -1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cfs_quota_burst_period_seconds: Option<i64>,
    /// Usage of the shared CPU pool, in percent, above which no CFS quota is raised.
    #[koord(admission(minimum = 0, maximum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pool_threshold_percent: Option<i64>,
}

words! {
    /// How containers may burst above their CPU limit.
    pub open enum CpuBurstPolicy {
        /// Not at all.
        None = "none",
        /// They accumulate unused CPU time.
        CpuBurstOnly = "cpuBurstOnly",
        /// Their CFS quota is raised while they are throttled.
        CfsQuotaBurstOnly = "cfsQuotaBurstOnly",
        /// Both.
        Auto = "auto",
    }
}
