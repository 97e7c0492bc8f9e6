//! NodeMetric: resource usage of a node and its pods, reported by koordlet. The object has the node's name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_resource::{Duration, Resource, ResourceList, Schema, Time, Validate};
use serde::{Deserialize, Serialize};

use crate::{
    device::DeviceInfo,
    extensions::Extensions,
    word::{self, words},
};

/// Reports the resource usage of one node and its pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Resource, Schema, Validate)]
#[koord(group = "slo.koordinator.sh", version = "v1alpha1", scope = "Cluster", status)]
#[koord(hardened(category = "koordinator", short_name = "nm"))]
#[koord(hardened(column(name = "CPU", type = "string", path = ".status.nodeMetric.nodeUsage.resources.cpu")))]
#[koord(hardened(column(name = "Memory", type = "string", path = ".status.nodeMetric.nodeUsage.resources.memory")))]
#[koord(hardened(column(name = "Updated", type = "date", path = ".status.updateTime")))]
pub struct NodeMetric {
    /// Standard object metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How koordlet collects metrics.
    #[serde(default)]
    pub spec: NodeMetricSpec,
    /// The collected metrics.
    #[serde(default)]
    pub status: NodeMetricStatus,
}

/// How koordlet collects metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricSpec {
    /// The collection policy.
    #[serde(rename = "metricCollectPolicy", default, skip_serializing_if = "Option::is_none")]
    pub collect_policy: Option<NodeMetricCollectPolicy>,
}

/// How, and how often, koordlet collects metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricCollectPolicy {
    /// The window of the average usage, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_duration_seconds: Option<i64>,
    /// The interval between two reports, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_interval_seconds: Option<i64>,
    /// Additional windows over which usage is aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_aggregate_policy: Option<AggregatePolicy>,
    /// Whether memory usage includes the page cache: `usageWithoutPageCache`, or `usageWithHotPageCache` for the frequently
    /// used part. (`usageWithPageCache` is accepted, but no koordlet collects it yet.)
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub node_memory_collect_policy: Option<NodeMemoryCollectPolicy>,
}

/// Windows over which usage is aggregated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
pub struct AggregatePolicy {
    /// Lengths of the windows, as durations such as `5m0s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durations: Vec<Duration>,
}

words! {
    /// Whether memory usage includes the page cache.
    pub enum NodeMemoryCollectPolicy {
        /// The frequently used part of it.
        UsageWithHotPageCache = "usageWithHotPageCache",
        /// It does not.
        UsageWithoutPageCache = "usageWithoutPageCache",
        /// All of it. No koordlet collects this yet.
        UsageWithPageCache = "usageWithPageCache",
    }
}

/// The collected metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricStatus {
    /// Last time the metrics were reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_time: Option<Time>,
    /// Usage of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_metric: Option<NodeMetricInfo>,
    /// Usage of each pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods_metric: Vec<PodMetricInfo>,
    /// Usage of each application outside of pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_application_metric: Vec<HostApplicationMetricInfo>,
    /// The requested resources that prod pods are predicted not to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prod_reclaimable_metric: Option<PredictionMetric>,
    /// The predicted peak usage of prod pods and the system, with a safety margin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prod_peak_metric: Option<PredictionMetric>,
}

/// Usage of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NodeMetricInfo {
    /// Average usage of the node.
    #[serde(default)]
    pub node_usage: ResourceMap,
    /// Usage of the node, aggregated over other windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_node_usages: Vec<AggregatedUsage>,
    /// Average usage of everything but pods.
    #[serde(default)]
    pub system_usage: ResourceMap,
    /// Usage of everything but pods, aggregated over other windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aggregated_system_usages: Vec<AggregatedUsage>,
    /// Average usage of each NUMA node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_usages: Vec<NumaUsage>,
}

/// Amounts of resources, and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct ResourceMap {
    /// Amounts by resource name.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// Devices with their used amounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInfo>,
}

/// Usage over one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct AggregatedUsage {
    /// Usage by aggregation type: `avg`, `p50`, `p90`, `p95` or `p99`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usage: BTreeMap<AggregationType, ResourceMap>,
    /// Length of the window.
    #[serde(default)]
    pub duration: Duration,
}

words! {
    /// How samples are aggregated.
    pub open enum AggregationType {
        /// The average.
        Average = "avg",
        /// The 99th percentile.
        P99 = "p99",
        /// The 95th percentile.
        P95 = "p95",
        /// The 90th percentile.
        P90 = "p90",
        /// The median.
        P50 = "p50",
    }
}

/// Usage of one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct NumaUsage {
    /// ID of the NUMA node.
    #[serde(rename = "numaNodeID")]
    pub numa_node_id: i32,
    /// Usage of the NUMA node.
    #[serde(default)]
    pub node_usage: ResourceMap,
    /// Usage of everything but pods.
    #[serde(default)]
    pub system_usage: ResourceMap,
}

/// Usage of one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase")]
pub struct PodMetricInfo {
    /// Name of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Average usage.
    #[serde(default)]
    pub pod_usage: ResourceMap,
    /// Priority class of the pod: `koord-prod`, `koord-mid`, `koord-batch` or `koord-free`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// QoS class of the pod.
    #[serde(rename = "qos", default, skip_serializing_if = "String::is_empty")]
    pub qos: String,
    /// Third-party metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
}

/// Usage of one application outside of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct HostApplicationMetricInfo {
    /// Name of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Average usage.
    #[serde(default)]
    pub usage: ResourceMap,
    /// Priority class of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// QoS class of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub qos: String,
}

/// A prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
pub struct PredictionMetric {
    /// The predicted amounts.
    #[serde(default)]
    pub resource: ResourceMap,
}
