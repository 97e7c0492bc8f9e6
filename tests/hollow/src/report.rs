//! What a hollow koordlet reports: the status of a NodeMetric, computed from the load of the node and the pods on it.

use std::time::Duration;

use jiff::Timestamp;
use koord_resource::Quantity;
use serde_json::{Map, Value, json};

use crate::{node::HollowNode, usage::Summary};

/// A pod that runs on a hollow node, as far as its usage is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningPod {
    pub namespace: String,
    pub name: String,
    /// What it asks for and therefore, at full load, uses: CPU in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory it asks for, in bytes.
    pub memory_bytes: u64,
    /// Koordinator's priority class; empty for none.
    pub priority_class: String,
    /// Koordinator's QoS class; empty for none.
    pub qos_class: String,
}

/// What is used at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Usage {
    cpu_milli: f64,
    memory_bytes: f64,
}

/// The share of its CPUs that the machine itself uses at a load.
pub(crate) fn system_cpu(share: f64) -> f64 {
    0.02 + 0.10 * share
}

/// The share of the memory that it requests which a pod holds at a load.
pub(crate) fn held_memory(share: f64) -> f64 {
    0.4 + 0.4 * share
}

impl Usage {
    /// Of the machine itself: daemons and kernel, which work more when the pods do.
    fn of_system(node: &HollowNode, share: f64) -> Self {
        Usage {
            cpu_milli: node.cpu_milli as f64 * system_cpu(share),
            memory_bytes: node.memory_bytes as f64 * (0.04 + 0.02 * share),
        }
    }

    /// Of a pod: CPU follows the load, memory is mostly held whatever the load.
    fn of_pod(pod: &RunningPod, share: f64) -> Self {
        Usage { cpu_milli: pod.cpu_milli as f64 * share, memory_bytes: pod.memory_bytes as f64 * held_memory(share) }
    }

    fn plus(self, other: Self) -> Self {
        Usage { cpu_milli: self.cpu_milli + other.cpu_milli, memory_bytes: self.memory_bytes + other.memory_bytes }
    }

    fn of_all(node: &HollowNode, pods: &[RunningPod], share: f64) -> Self {
        pods.iter().map(|pod| Usage::of_pod(pod, share)).fold(Usage::of_system(node, share), Usage::plus)
    }

    /// As NodeMetric writes it.
    fn resources(self) -> Value {
        json!({ "resources": {
            "cpu": Quantity::cpu_milli(self.cpu_milli.round() as i64),
            "memory": Quantity::bytes(self.memory_bytes.round() as i64),
        }})
    }
}

/// How often a node reports, and over which spans it aggregates: the policy of its NodeMetric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectPolicy {
    /// From one report to the next.
    pub interval: Duration,
    /// Spans of the aggregated usages.
    pub spans: Vec<Duration>,
}

impl Default for CollectPolicy {
    /// The built-in policy of Koordinator.
    fn default() -> Self {
        Self { interval: Duration::from_mins(1), spans: [5, 10, 30].map(Duration::from_mins).to_vec() }
    }
}

impl CollectPolicy {
    /// Reads the policy of a NodeMetric; what is absent or makes no sense is the built-in policy's.
    pub fn read(node_metric: &Value) -> Self {
        let policy = &node_metric["spec"]["metricCollectPolicy"];
        let default = Self::default();
        let spans: Vec<Duration> = policy["nodeAggregatePolicy"]["durations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|text| text.as_str()?.parse::<koord_resource::Duration>().ok()?.to_std())
            .filter(|span| !span.is_zero())
            .collect();
        let interval = policy["reportIntervalSeconds"].as_u64().filter(|seconds| *seconds > 0);
        Self {
            interval: interval.map_or(default.interval, Duration::from_secs),
            spans: if spans.is_empty() { default.spans } else { spans },
        }
    }
}

/// The status that a node reports at `now`.
pub fn status(node: &HollowNode, pods: &[RunningPod], policy: &CollectPolicy, now: Timestamp) -> Value {
    let share = node.usage.measured(node.seed, now);
    let aggregated = |usage: &dyn Fn(f64) -> Usage| -> Vec<Value> {
        policy
            .spans
            .iter()
            .map(|span| {
                let Summary { avg, p50, p90, p95, p99 } = Summary::of(&node.usage, node.seed, now, *span);
                // Usage grows with the share, so a percentile of the share is the percentile of the usage.
                let usage: Map<String, Value> = [("avg", avg), ("p50", p50), ("p90", p90), ("p95", p95), ("p99", p99)]
                    .into_iter()
                    .map(|(name, share)| (name.to_owned(), usage(share).resources()))
                    .collect();
                json!({ "duration": koord_resource::Duration::from(*span), "usage": usage })
            })
            .collect()
    };
    let pods_metric: Vec<Value> = pods
        .iter()
        .map(|pod| {
            json!({
                "namespace": pod.namespace,
                "name": pod.name,
                "priority": pod.priority_class,
                "qos": pod.qos_class,
                "podUsage": Usage::of_pod(pod, share).resources(),
            })
        })
        .collect();
    // What production pods have asked for and do not use.
    let reclaimable = pods
        .iter()
        .filter(|pod| pod.priority_class == "koord-prod" || pod.priority_class.is_empty())
        .map(|pod| {
            let used = Usage::of_pod(pod, share);
            Usage {
                cpu_milli: (pod.cpu_milli as f64 - used.cpu_milli).max(0.0),
                memory_bytes: (pod.memory_bytes as f64 - used.memory_bytes).max(0.0),
            }
        })
        .fold(Usage::default(), Usage::plus);
    json!({
        "updateTime": k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now),
        "nodeMetric": {
            "nodeUsage": Usage::of_all(node, pods, share).resources(),
            "systemUsage": Usage::of_system(node, share).resources(),
            "aggregatedNodeUsages": aggregated(&|share| Usage::of_all(node, pods, share)),
            "aggregatedSystemUsages": aggregated(&|share| Usage::of_system(node, share)),
        },
        "podsMetric": pods_metric,
        "prodReclaimableMetric": { "resource": reclaimable.resources() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{seed::Seed, usage::UsageModel};

    fn steady_node(share: f64) -> HollowNode {
        let mut node = HollowNode::of_fleet(Seed::new(1), 0);
        (node.cpu_milli, node.memory_bytes) = (16_000, 64 << 30);
        node.usage = UsageModel::Steady { share };
        node
    }

    fn pod(priority_class: &str) -> RunningPod {
        RunningPod {
            namespace: "default".into(),
            name: "web".into(),
            cpu_milli: 4000,
            memory_bytes: 8 << 30,
            priority_class: priority_class.into(),
            qos_class: "LS".into(),
        }
    }

    fn cpu_milli(value: &Value) -> i64 {
        value["resources"]["cpu"].as_str().unwrap().parse::<Quantity>().unwrap().milli_value()
    }

    #[test]
    fn a_node_uses_what_its_system_and_its_pods_use() {
        let report = status(&steady_node(0.5), &[pod("koord-prod")], &CollectPolicy::default(), Timestamp::UNIX_EPOCH);
        let metric = &report["nodeMetric"];
        let (node, system) = (cpu_milli(&metric["nodeUsage"]), cpu_milli(&metric["systemUsage"]));
        let pod = cpu_milli(&report["podsMetric"][0]["podUsage"]);
        assert_eq!(node, system + pod);
        assert!((1900..2100).contains(&pod), "half of 4 cores, give or take the tremble: {pod}");
        assert!((1090..1150).contains(&system), "7 % of 16 cores: {system}");
    }

    #[test]
    fn only_what_production_pods_leave_unused_is_reclaimable() {
        let at = Timestamp::UNIX_EPOCH;
        let reclaimable = |class: &str| {
            let report = status(&steady_node(0.5), &[pod(class)], &CollectPolicy::default(), at);
            cpu_milli(&report["prodReclaimableMetric"]["resource"])
        };
        assert!((1900..2100).contains(&reclaimable("koord-prod")));
        assert_eq!(reclaimable("koord-batch"), 0);
    }

    #[test]
    fn aggregates_follow_the_policy_of_the_node_metric() {
        let policy = CollectPolicy::read(&json!({"spec": {"metricCollectPolicy": {
            "reportIntervalSeconds": 30, "nodeAggregatePolicy": {"durations": ["1m30s", "1h0m0s", "nonsense", "0s"]},
        }}}));
        assert_eq!(policy.interval, Duration::from_secs(30));
        let report = status(&steady_node(0.3), &[], &policy, Timestamp::UNIX_EPOCH);
        let spans: Vec<&str> = report["nodeMetric"]["aggregatedNodeUsages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|usage| usage["duration"].as_str().unwrap())
            .collect();
        assert_eq!(spans, ["1m30s", "1h0m0s"]);
        for name in ["avg", "p50", "p90", "p95", "p99"] {
            assert!(cpu_milli(&report["nodeMetric"]["aggregatedSystemUsages"][0]["usage"][name]) > 0, "{name}");
        }
    }

    #[test]
    fn a_policy_that_makes_no_sense_is_the_built_in_one() {
        for policy in [json!({}), json!({"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 0}}}), json!(3)] {
            assert_eq!(CollectPolicy::read(&policy), CollectPolicy::default());
        }
    }
}
