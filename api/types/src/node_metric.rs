//! NodeMetric: what a node and its pods use, as koordlet measures it. The object has the node's name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use koord_resource::{Duration, Resource, ResourceList, Schema};
use serde::{Deserialize, Serialize};

use crate::{
    device::DeviceInfo,
    extensions::Extensions,
    word::{self, words},
};

/// What a node and its pods use.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema)]
#[koord(group = "slo.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "nm"))]
#[koord(hardened(column(name = "CPU", type = "string", path = ".status.nodeMetric.nodeUsage.resources.cpu")))]
#[koord(hardened(column(name = "Memory", type = "string", path = ".status.nodeMetric.nodeUsage.resources.memory")))]
#[koord(hardened(column(name = "Updated", type = "date", path = ".status.updateTime")))]
pub struct NodeMetric {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What koordlet is to measure.
    #[serde(default)]
    pub spec: NodeMetricSpec,
    /// What koordlet measured.
    #[serde(default)]
    pub status: NodeMetricStatus,
}

/// What koordlet is to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricSpec {
    /// How, and how often.
    #[serde(rename = "metricCollectPolicy", default, skip_serializing_if = "Option::is_none")]
    pub collect_policy: Option<NodeMetricCollectPolicy>,
}

/// How, and how often, koordlet measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricCollectPolicy {
    /// Over how many seconds usage is averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_duration_seconds: Option<i64>,
    /// How many seconds lie between two reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_interval_seconds: Option<i64>,
    /// Over which further windows usage is aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_aggregate_policy: Option<AggregatePolicy>,
    /// Whether memory that only caches files counts as used: `usageWithoutPageCache`, or `usageWithHotPageCache` for what
    /// is used often. (`usageWithPageCache` is accepted, but no koordlet measures it yet.)
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub node_memory_collect_policy: Option<NodeMemoryCollectPolicy>,
}

/// Windows over which usage is aggregated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct AggregatePolicy {
    /// Lengths of the windows, as durations such as `5m0s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durations: Vec<Duration>,
}

words! {
    /// Whether memory that only caches files counts as used.
    pub enum NodeMemoryCollectPolicy {
        /// The part of it counts that is used often.
        UsageWithHotPageCache = "usageWithHotPageCache",
        /// It does not count.
        UsageWithoutPageCache = "usageWithoutPageCache",
        /// All of it counts. No koordlet measures this yet.
        UsageWithPageCache = "usageWithPageCache",
    }
}

/// What koordlet measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricStatus {
    /// When it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_time: Option<Time>,
    /// What the node uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_metric: Option<NodeMetricInfo>,
    /// What each pod uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_metric: Vec<PodMetricInfo>,
    /// What each application outside pods uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_application_metric: Vec<HostApplicationMetricInfo>,
    /// How much of what prod pods requested they are not expected to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prod_reclaimable_metric: Option<PredictionMetric>,
    /// How much prod pods and the system are expected to use at most, with a safety margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prod_peak_metric: Option<PredictionMetric>,
}

/// What a node uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricInfo {
    /// Average use of the whole node.
    #[serde(default)]
    pub node_usage: ResourceMap,
    /// Use of the whole node over other windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_node_usages: Vec<AggregatedUsage>,
    /// Average use of everything but pods.
    #[serde(default)]
    pub system_usage: ResourceMap,
    /// Use of everything but pods over other windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_system_usages: Vec<AggregatedUsage>,
    /// Average use per NUMA node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_usages: Vec<NumaUsage>,
}

/// Amounts of resources, and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct ResourceMap {
    /// Amounts by resource name.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// Devices, with the amounts that are used of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInfo>,
}

/// Use over one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct AggregatedUsage {
    /// Use by kind of aggregate: `avg`, `p50`, `p90`, `p95` or `p99`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usage: BTreeMap<AggregationType, ResourceMap>,
    /// Length of the window.
    #[serde(default)]
    pub duration: Duration,
}

words! {
    /// How samples become one value.
    pub open enum AggregationType {
        /// Their mean.
        Average = "avg",
        /// 99 of 100 are not larger.
        P99 = "p99",
        /// 95 of 100 are not larger.
        P95 = "p95",
        /// 90 of 100 are not larger.
        P90 = "p90",
        /// Half of them are not larger.
        P50 = "p50",
    }
}

/// Use of one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct NumaUsage {
    /// Number of the NUMA node.
    #[serde(rename = "numaNodeID")]
    pub numa_node_id: i32,
    /// Use of all of it.
    #[serde(default)]
    pub node_usage: ResourceMap,
    /// Use of everything but pods.
    #[serde(default)]
    pub system_usage: ResourceMap,
}

/// What one pod uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricInfo {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Average use.
    #[serde(default)]
    pub pod_usage: ResourceMap,
    /// Priority class of the pod: `koord-prod`, `koord-mid`, `koord-batch` or `koord-free`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// QoS class of the pod.
    #[serde(rename = "qos", default, skip_serializing_if = "String::is_empty")]
    pub qos: String,
    /// Measurements of third parties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
}

/// What one application outside pods uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct HostApplicationMetricInfo {
    /// Name of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Average use.
    #[serde(default)]
    pub usage: ResourceMap,
    /// Priority class of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// QoS class of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub qos: String,
}

/// An expectation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PredictionMetric {
    /// Amounts.
    #[serde(default)]
    pub resource: ResourceMap,
}
