//! System parameters of a node.

use std::collections::BTreeMap;

use koord_resource::{Mutate, Quantity, Schema, Validate};
use serde::{Deserialize, Serialize};

/// System parameters of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct SystemStrategy {
    /// `min_free_kbytes`, in 1/10000 of the node's memory.
    #[koord(admission(minimum = 0, exclusive_minimum))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_free_kbytes_factor: Option<i64>,
    /// `watermark_scale_factor`: the distance between the memory watermarks, in 1/10000 of the node's memory.
    #[koord(admission(minimum = 0, exclusive_minimum, maximum = 400))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark_scale_factor: Option<i64>,
    /// 1 to reclaim the memory of deleted cgroups in the background, else 0.
    #[koord(admission(minimum = 0, maximum = 1))]
    #[serde(rename = "memcgReapBackGround", default, skip_serializing_if = "Option::is_none")]
    pub memcg_reap_background: Option<i64>,
    /// 1 to enable the kernel's group identity, else 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_group_identity_enabled: Option<i64>,
    /// `sched_idle_saver_wmark` of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_idle_saver_wmark: Option<i64>,
    /// Features of the kernel scheduler to enable or disable, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sched_features: BTreeMap<String, bool>,
    /// 1 to enable the page cache limit, else 0.
    #[koord(admission(minimum = 0, maximum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_limit_enabled: Option<i64>,
    /// Total network bandwidth of the node, in bits per second.
    ///
    /// The Go client has no way to leave it out and writes `0`; in configurations absent means "as inherited".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_network_bandwidth: Option<Quantity>,
}
