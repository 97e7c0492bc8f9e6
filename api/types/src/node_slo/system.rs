//! Settings of the whole node.

use std::collections::BTreeMap;

use koord_resource::{Quantity, Schema};
use serde::{Deserialize, Serialize};

/// Settings of the whole node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct SystemStrategy {
    /// Memory that the kernel keeps free, in ten-thousandths of all memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_free_kbytes_factor: Option<i64>,
    /// Distance between the kernel's memory watermarks, in ten-thousandths of all memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark_scale_factor: Option<i64>,
    /// 1 to reclaim memory of removed cgroups in the background, else 0.
    #[serde(rename = "memcgReapBackGround", default, skip_serializing_if = "Option::is_none")]
    pub memcg_reap_background: Option<i64>,
    /// 1 to switch the kernel's group identities on, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_group_identity_enabled: Option<i64>,
    /// Watermark of the kernel's idle saver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_idle_saver_wmark: Option<i64>,
    /// Features of the kernel's scheduler, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sched_features: BTreeMap<String, bool>,
    /// 1 to limit memory that only caches files, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_enabled: Option<i64>,
    /// Bandwidth of the node's network, in bits per second.
    ///
    /// The Go client has no way to leave it out and writes `0`; in configurations absent means "as inherited".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_network_bandwidth: Option<Quantity>,
}
