//! What is read of a NodeMetric.

use std::collections::BTreeMap;

use koord_core::key::ObjectKey;
use koord_resource::Duration;
use koord_types::{
    node_metric::{self, AggregationType, NodeMetricStatus, ResourceMap},
    priority::PriorityClass,
};

use super::{Amounts, Dimensions};

/// What the node agent has reported about a node. Amounts that were not reported are an empty vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeMetric {
    /// When, in seconds since 1970.
    pub updated: Option<i64>,
    /// How many seconds lie between two reports.
    pub interval_seconds: i64,
    /// Usage of the node; none before the first report.
    pub node: Option<NodeUsage>,
    /// Usage of its pods.
    pub pods: BTreeMap<ObjectKey, PodUsage>,
}

/// Usage of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeUsage {
    /// Average of the node.
    pub average: Amounts,
    /// Average of everything but pods.
    pub system: Amounts,
    /// Other values of the node, each over a time of this length.
    pub aggregated: Vec<(Duration, BTreeMap<AggregationType, Amounts>)>,
}

/// Usage of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodUsage {
    pub average: Amounts,
    /// Whether it is reported as a production pod.
    pub is_prod: bool,
}

impl NodeMetric {
    /// Between two reports where nothing is configured.
    const INTERVAL_SECONDS: i64 = 60;

    /// What is read of an object of the API.
    pub fn of(object: &node_metric::NodeMetric, dimensions: &Dimensions) -> Self {
        let NodeMetricStatus { update_time, node_metric, pods_metric, .. } = &object.status;
        let policy = object.spec.collect_policy.as_ref();
        let usage = |map: &ResourceMap| match &map.resources {
            resources if resources.is_empty() => Amounts::new(),
            resources => dimensions.list(resources),
        };
        let node = node_metric.as_ref().map(|node| NodeUsage {
            average: usage(&node.node_usage),
            system: usage(&node.system_usage),
            aggregated: node
                .aggregated_node_usages
                .iter()
                .map(|window| {
                    let values = window.usage.iter().map(|(type_, map)| (type_.clone(), usage(map)));
                    (window.duration, values.collect())
                })
                .collect(),
        });
        let pods = pods_metric.iter().map(|pod| {
            let is_prod = pod.priority == PriorityClass::Prod.as_str();
            (ObjectKey::new(&pod.namespace, &pod.name), PodUsage { average: usage(&pod.pod_usage), is_prod })
        });
        Self {
            updated: update_time.map(|time| time.at().as_second()),
            interval_seconds: policy
                .and_then(|policy| policy.report_interval_seconds)
                .unwrap_or(Self::INTERVAL_SECONDS),
            pods: pods.collect(),
            node,
        }
    }

    /// The usage of a pod, if some is reported.
    pub fn pod(&self, key: &ObjectKey) -> Option<&PodUsage> {
        self.pods.get(key).filter(|pod| !pod.average.is_empty())
    }
}

impl NodeUsage {
    /// A value of the node's usage over a time of this length; over the longest time for which it is reported where the
    /// length is 0.
    pub fn aggregated(&self, type_: &AggregationType, length: Duration) -> Option<&Amounts> {
        let mut reported = self.aggregated.iter().filter_map(|(known, values)| {
            values.get(type_).filter(|usage| !usage.is_empty()).map(|usage| (known, usage))
        });
        match length {
            Duration::ZERO => reported.max_by_key(|(known, _)| **known).map(|(_, usage)| usage),
            // Of two of the same length the last counts.
            _ => reported.rfind(|(known, _)| **known == length).map(|(_, usage)| usage),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cpu(cores: &str) -> serde_json::Value {
        json!({"resources": {"cpu": cores}})
    }

    #[test]
    fn a_report_may_have_the_last_time_that_can_be_written() {
        let object = json!({"metadata": {"name": "n"}, "status": {"updateTime": "9999-12-31T23:59:59Z"}});
        let metric = NodeMetric::of(&serde_json::from_value(object).unwrap(), &Dimensions::of([]));
        assert_eq!(metric.updated, Some(253_402_207_200));
    }

    #[test]
    fn the_longest_time_counts_where_none_is_named() {
        let windows = json!([
            {"duration": "5m", "usage": {"p95": cpu("5"), "avg": cpu("1")}},
            {"duration": "30m", "usage": {"p95": cpu("30"), "avg": {}}},
        ]);
        let object = json!({
            "metadata": {"name": "n"},
            "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 10}},
            "status": {
                "updateTime": "1970-01-01T00:02:00Z",
                "nodeMetric": {"nodeUsage": cpu("2"), "aggregatedNodeUsages": windows},
                "podsMetric": [
                    {"namespace": "ns", "name": "a", "priority": "koord-prod", "podUsage": cpu("1")},
                    {"namespace": "ns", "name": "b", "podUsage": {}},
                ],
            },
        });
        let metric = NodeMetric::of(&serde_json::from_value(object).unwrap(), &Dimensions::of([]));
        assert_eq!((metric.updated, metric.interval_seconds), (Some(120), 10));
        let node = metric.node.as_ref().unwrap();
        let p95 = |seconds| {
            let usage = node.aggregated(&AggregationType::P95, Duration::from_secs(seconds))?;
            Some(usage[0])
        };
        assert_eq!([0, 300, 1800, 60].map(p95), [Some(30_000), Some(5000), Some(30_000), None]);
        let average = node.aggregated(&AggregationType::Average, Duration::ZERO).unwrap();
        assert_eq!(average[..], [1000, 0], "an empty list counts as none");
        assert!(metric.pod(&ObjectKey::new("ns", "a")).unwrap().is_prod);
        assert_eq!(metric.pod(&ObjectKey::new("ns", "b")), None, "an empty list counts as none");
    }

    #[test]
    fn an_object_without_a_report_has_no_usage() {
        let object = json!({"metadata": {"name": "n"}});
        let metric = NodeMetric::of(&serde_json::from_value(object).unwrap(), &Dimensions::of([]));
        assert_eq!(metric, NodeMetric { interval_seconds: 60, ..NodeMetric::default() });
    }
}
