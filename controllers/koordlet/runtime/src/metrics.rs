//! The metrics of the agent: which there are, and how they get their values when they are asked for.

use std::{collections::BTreeMap, sync::Arc};

use koord_runtime::metrics::{Audience, Description, Metrics, Unit};
use parking_lot::Mutex;
use prometheus::{GaugeVec, IntCounterVec};

use crate::{
    agent::{Agent, Now},
    durations::{Durations, KUBELET_REQUESTS, UPDATES},
};

const fn internal(name: &'static str, labels: &'static [&'static str], unit: Unit, help: &'static str) -> Description {
    Description::gauge(name, labels, help).unit(unit).to(Audience::Internal)
}

const fn external(name: &'static str, labels: &'static [&'static str], unit: Unit, help: &'static str) -> Description {
    Description::gauge(name, labels, help).unit(unit).to(Audience::External)
}

const fn counted(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Description {
    Description::counter(name, labels, help).to(Audience::Internal)
}

const EVICTIONS: Description = counted("koordlet_pod_eviction", &["node", "reason"], "Pods that were evicted.");
const EVICTION_DETAILS: Description = counted(
    "koordlet_pod_eviction_detail",
    &["node", "pod_namespace", "pod_name", "reason"],
    "Pods that were evicted, by name; for five minutes after the last eviction.",
);

/// How often parts of the node were looked at.
const COLLECTIONS: [Description; 3] = [
    counted(
        "koordlet_collect_node_cpu_info_status",
        &["node", "status"],
        "How often the CPUs of the node were looked at: once, as they do not change.",
    ),
    counted(
        "koordlet_collect_node_numa_info_status",
        &["node", "status"],
        "How often the NUMA nodes were looked at, for the NodeResourceTopology.",
    ),
    counted(
        "koordlet_collect_node_local_storage_info_status",
        &["node", "status"],
        "How often the disks were looked at, for disk limits.",
    ),
];

const CONTAINER: &[&str] =
    &["node", "pod_uid", "pod_name", "pod_namespace", "container_id", "container_name", "resource", "unit"];
const SCALED: &[&str] = &["node", "pod_namespace", "pod_name", "container_id", "container_name"];

/// Every gauge.
const GAUGES: &[Description] = &[
    internal("koordlet_start_time", &["node"], Unit::UnixTime, "When the agent started."),
    internal(
        "koord_koordlet_capability",
        &["node", "feature", "state"],
        Unit::YesNo,
        "Always 1; the labels say whether a feature is active, off or degraded.",
    )
    .advice("`koordlet` logs the reason and the remedy of a degraded feature when it becomes that."),
    internal("koordlet_node_used_cpu_cores", &["node"], Unit::Count, "CPUs of the node in use."),
    internal(
        "koordlet_node_used_memory_bytes",
        &["node"],
        Unit::Bytes,
        "Memory of the node in use, page cache excluded.",
    ),
    internal(
        "koordlet_be_suppress_cpu_cores",
        &["node", "type"],
        Unit::Count,
        "CPUs that BE pods may use; the type is the policy that suppresses them.",
    ),
    internal("koordlet_be_suppress_ls_used_cpu_cores", &["node"], Unit::Count, "CPUs in use by pods that are not BE."),
    internal("koordlet_be_suppress_be_used_cpu_cores", &["node"], Unit::Count, "CPUs in use by BE pods."),
    internal(
        "koordlet_container_scaled_cfs_burst_us",
        SCALED,
        Unit::Count,
        "The CFS burst of a container, in microseconds.",
    ),
    internal(
        "koordlet_container_scaled_cfs_quota_us",
        SCALED,
        Unit::Count,
        "The CFS quota of a container that was scaled, in microseconds.",
    ),
    internal("koordlet_cpuset_share_pool_cpu_cores", &["node"], Unit::Count, "CPUs that LS pods share."),
    internal("koordlet_cpuset_be_share_pool_cpu_cores", &["node"], Unit::Count, "CPUs that BE pods share."),
    internal(
        "koordlet_cpuset_share_pool_info",
        &["node", "cpu"],
        Unit::YesNo,
        "Always 1; the label is a CPU that LS pods share. With the gate PerCPUMetric.",
    ),
    internal(
        "koordlet_cpuset_be_share_pool_info",
        &["node", "cpu"],
        Unit::YesNo,
        "Always 1; the label is a CPU that BE pods share. With the gate PerCPUMetric.",
    ),
    internal(
        "koordlet_node_predicted_resource_reclaimable",
        &["node", "predictor", "resource", "unit"],
        Unit::Labelled,
        "What prod pods request and are predicted not to use.",
    ),
    internal(
        "koordlet_node_predicted_resource_peak",
        &["node", "predictor", "resource", "unit"],
        Unit::Labelled,
        "What prod pods and the system are predicted to use at most.",
    ),
    internal(
        "koordlet_node_metric_node_usage",
        &["node", "resource", "unit"],
        Unit::Labelled,
        "What the NodeMetric reports of the node. With the gate NodeMetricPromMetrics.",
    ),
    internal(
        "koordlet_node_metric_system_usage",
        &["node", "resource", "unit"],
        Unit::Labelled,
        "What the NodeMetric reports of everything but pods. With the gate NodeMetricPromMetrics.",
    ),
    internal(
        "koordlet_node_metric_numa_node_usage",
        &["node", "numa_node_id", "resource", "unit"],
        Unit::Labelled,
        "What the NodeMetric reports of a NUMA node. With the gate NodeMetricPromMetrics.",
    ),
    internal(
        "koordlet_node_metric_numa_system_usage",
        &["node", "numa_node_id", "resource", "unit"],
        Unit::Labelled,
        "What the NodeMetric reports of a NUMA node but pods. With the gate NodeMetricPromMetrics.",
    ),
    internal(
        "koordlet_container_oom_score_adj",
        &["node", "pod_uid", "pod_name", "pod_namespace", "container_name"],
        Unit::Count,
        "The OOM score adjustment that a container's processes have been given.",
    ),
    internal(
        "koordlet_host_application_resource_usage",
        &["node", "host_application_name", "resource", "priority_class", "qos"],
        Unit::Count,
        "CPUs or bytes that an application outside of pods uses.",
    ),
    external(
        "koordlet_node_resource_allocatable",
        &["node", "resource", "unit"],
        Unit::Labelled,
        "What of batch and mid resources is allocatable.",
    ),
    external(
        "koordlet_node_priority_resource_reclaimable",
        &["node", "priority", "resource", "unit"],
        Unit::Labelled,
        "What is reported to be reclaimable of a priority class.",
    ),
    external(
        "koordlet_node_resource_priority_reclaimable_status",
        &["node", "priority"],
        Unit::Count,
        "0 when something is predicted of a priority class, 1 when not.",
    ),
    external(
        "koordlet_container_resource_requests",
        CONTAINER,
        Unit::Labelled,
        "What a container requests of batch and mid resources.",
    ),
    external(
        "koordlet_container_resource_limits",
        CONTAINER,
        Unit::Labelled,
        "The limits of a container for batch and mid resources.",
    ),
    external(
        "koordlet_container_cpi",
        &["node", "pod_uid", "pod_name", "pod_namespace", "container_id", "container_name", "cpi_field"],
        Unit::Count,
        "Cycles and instructions of a container in the last window.",
    ),
    external(
        "koordlet_container_psi",
        &[
            "node",
            "pod_uid",
            "pod_name",
            "pod_namespace",
            "container_id",
            "container_name",
            "psi_resource_type",
            "psi_precision",
            "psi_degree",
            "cpu_full_supported",
        ],
        Unit::Count,
        "Pressure of a container, in percent of the time.",
    ),
    external(
        "koordlet_pod_psi",
        &[
            "node",
            "pod_uid",
            "pod_name",
            "pod_namespace",
            "psi_resource_type",
            "psi_precision",
            "psi_degree",
            "cpu_full_supported",
        ],
        Unit::Count,
        "Pressure of a pod, in percent of the time.",
    ),
    external(
        "koordlet_resctrl_llc_occupancy",
        &["node", "cache_id", "qos"],
        Unit::Bytes,
        "What a class occupies of an L3 cache.",
    ),
    external(
        "koordlet_resctrl_memory_bandwidth",
        &["node", "cache_id", "qos", "mb_type"],
        Unit::Bytes,
        "What a class has transferred from and to memory.",
    ),
];

/// Every metric of the agent, by name.
pub fn metrics() -> Vec<Description> {
    let others = [EVICTIONS, EVICTION_DETAILS, KUBELET_REQUESTS, UPDATES];
    GAUGES.iter().chain(&others).chain(&COLLECTIONS).copied().collect()
}

/// Metrics with their values as of the last request for them.
pub struct Measures {
    agent: Arc<Mutex<Agent>>,
    gauges: BTreeMap<&'static str, (GaugeVec, &'static [&'static str])>,
    evictions: IntCounterVec,
    eviction_details: IntCounterVec,
    collections: BTreeMap<&'static str, IntCounterVec>,
}

impl Measures {
    /// Registers the metrics of an agent.
    ///
    /// # Errors
    ///
    /// A name is registered already.
    pub fn new(metrics: &Metrics, agent: Arc<Mutex<Agent>>) -> prometheus::Result<Self> {
        let gauge = |description: &Description| {
            Ok((description.name, (metrics.float_gauge(*description)?, description.labels)))
        };
        agent.lock().measure(Durations::new(metrics)?);
        let counter = |description: &Description| Ok((description.name, metrics.counter(*description)?));
        Ok(Self {
            agent,
            collections: COLLECTIONS.iter().map(counter).collect::<prometheus::Result<_>>()?,
            gauges: GAUGES.iter().map(gauge).collect::<prometheus::Result<_>>()?,
            evictions: metrics.counter(EVICTIONS)?,
            eviction_details: metrics.counter(EVICTION_DETAILS)?,
        })
    }

    /// Brings all values up to date.
    pub fn refresh(&self, now: Now) {
        let agent = self.agent.lock();
        for (gauge, _) in self.gauges.values() {
            gauge.reset();
        }
        for series in agent.series(now) {
            let Some((gauge, names)) = self.gauges.get(series.name.as_str()) else { continue };
            let labels: Vec<&str> =
                names.iter().map(|name| series.labels.get(name).map_or("", String::as_str)).collect();
            gauge.with_label_values(&labels).set(series.value);
        }
        let node = agent.node_name();
        for counter in self.collections.values() {
            counter.reset();
        }
        for (name, status, count) in agent.collections() {
            let Some(counter) = self.collections.get(name) else { continue };
            counter.with_label_values(&[node, status]).inc_by(count);
        }
        self.evictions.reset();
        self.eviction_details.reset();
        for (reason, count) in agent.evictions() {
            self.evictions.with_label_values(&[node, reason]).inc_by(count);
        }
        for (pod, reason, count) in agent.evicted_pods(now) {
            let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
            self.eviction_details.with_label_values(&[node, namespace, name, reason]).inc_by(count);
        }
    }
}
