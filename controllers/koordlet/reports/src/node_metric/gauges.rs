//! Values of gauges that follow from the reported status, and from the objects.

use std::{borrow::Cow, sync::Arc};

use koord_koordlet_framework::{Node, Pod};
use koord_koordlet_metrics::gauges::Gauge;
use koord_types::{
    node_metric::{NodeMetricStatus, ResourceMap},
    resource_names::{BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY},
};

/// Colocation resources with their units.
const COLOCATION: [(&str, &str); 4] =
    [(BATCH_CPU, "integer"), (BATCH_MEMORY, "byte"), (MID_CPU, "integer"), (MID_MEMORY, "byte")];

type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// What was reported: `node_metric_node_usage`, `node_metric_system_usage`, `node_metric_numa_node_usage` and `node_metric_numa_system_usage`.
pub fn node_metric_gauges(status: &NodeMetricStatus) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    let mut add = |name, labels: &Labels, usage: &ResourceMap| {
        for (resource, unit) in [("cpu", "core"), ("memory", "byte")] {
            let Some(amount) = usage.resources.get(resource) else { continue };
            let labels = labels.iter().cloned().chain([("resource", resource.into()), ("unit", unit.into())]);
            gauges.push(Gauge::new(name, labels.collect(), amount.as_f64()));
        }
    };
    let Some(metric) = &status.node_metric else { return gauges };
    add("node_metric_node_usage", &Labels::new(), &metric.node_usage);
    add("node_metric_system_usage", &Labels::new(), &metric.system_usage);
    for numa in &metric.numa_usages {
        let labels = vec![("numa_node_id", numa.numa_node_id.to_string().into())];
        add("node_metric_numa_node_usage", &labels, &numa.node_usage);
        add("node_metric_numa_system_usage", &labels, &numa.system_usage);
    }
    gauges
}

/// What of colocation resources is allocatable: `node_resource_allocatable`, of resources that the node has.
pub fn allocatable_gauges(node: &Node) -> Vec<Gauge> {
    let gauge = |(resource, unit): (&'static str, &'static str)| {
        let amount = node.allocatable(resource)?;
        let labels = vec![("resource", resource.into()), ("unit", unit.into())];
        Some(Gauge::new("node_resource_allocatable", labels, amount as f64))
    };
    COLOCATION.into_iter().filter_map(gauge).collect()
}

/// What containers request and are limited to of colocation resources: `container_resource_requests` and `container_resource_limits`.
///
/// QUIRK: the unit of all requests is `integer`, and that of all limits `byte`: dashboards select by it.
pub fn container_resource_gauges(pods: &[Arc<Pod>]) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for (pod, container) in pods.iter().flat_map(|pod| pod.regular_containers().map(move |container| (pod, container)))
    {
        let Some(id) = &container.id else { continue };
        for (resource, _) in COLOCATION {
            let amounts = [
                ("container_resource_requests", "integer", container.request(resource)),
                ("container_resource_limits", "byte", container.limit(resource)),
            ];
            for (name, unit, amount) in amounts {
                let Some(amount) = amount else { continue };
                let labels: Labels = vec![
                    ("resource", resource.into()),
                    ("unit", unit.into()),
                    ("pod_uid", pod.uid.to_string().into()),
                    ("pod_name", pod.name.to_string().into()),
                    ("pod_namespace", pod.namespace.to_string().into()),
                    ("container_id", id.to_string().into()),
                    ("container_name", container.name.to_string().into()),
                ];
                gauges.push(Gauge::new(name, labels, amount as f64));
            }
        }
    }
    gauges
}
