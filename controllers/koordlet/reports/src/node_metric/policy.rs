//! How the NodeMetric object wants its status, with defaults for what it does not say.

use std::time::Duration;

use koord_koordlet_metrics::Retention;
use koord_types::node_metric::{NodeMemoryCollectPolicy, NodeMetricSpec};

/// What is reported, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMetricPolicy {
    /// The window of averages.
    pub aggregate: Duration,
    /// The time from one report to the next.
    pub report_interval: Duration,
    /// The windows of aggregated usage.
    pub durations: Vec<Duration>,
    pub memory: MemoryUsage,
}

/// Which part of the page cache counts as usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryUsage {
    #[default]
    WithoutPageCache,
    WithHotPages,
    WithPageCache,
}

const AGGREGATE_MIN: Duration = Duration::from_mins(1);
const REPORT_INTERVAL_MIN: Duration = Duration::from_secs(30);
/// Longer windows are cut: samples are not kept for longer.
const DURATION_MAX: Duration = Duration::from_hours(2);

impl Default for NodeMetricPolicy {
    fn default() -> Self {
        Self {
            aggregate: Duration::from_mins(5),
            report_interval: Duration::from_mins(1),
            durations: [5, 10, 30].map(Duration::from_mins).to_vec(),
            memory: MemoryUsage::default(),
        }
    }
}

impl NodeMetricPolicy {
    /// The policy of an object. What it does not say has its default: an aggregate duration of 300 seconds (at least 60), a report each 60 seconds (at least
    /// 30), aggregated usage of 5, 10 and 30 minutes, memory without the page cache. Durations that are not positive are left out.
    pub fn of(spec: &NodeMetricSpec) -> Self {
        let default = Self::default();
        let Some(policy) = &spec.collect_policy else { return default };
        let seconds = |seconds: Option<i64>, default: Duration, min: Duration| {
            let seconds = seconds.map_or(default, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            seconds.clamp(min, DURATION_MAX.max(min))
        };
        let durations = policy.node_aggregate_policy.as_ref().map(|aggregate| &aggregate.durations);
        let durations = durations.filter(|durations| !durations.is_empty()).map(|durations| {
            let positive = durations.iter().filter_map(|duration| duration.to_std()).filter(|span| !span.is_zero());
            positive.map(|span| span.min(DURATION_MAX)).collect()
        });
        Self {
            aggregate: seconds(policy.aggregate_duration_seconds, default.aggregate, AGGREGATE_MIN),
            report_interval: seconds(policy.report_interval_seconds, default.report_interval, REPORT_INTERVAL_MIN),
            durations: durations.unwrap_or(default.durations),
            memory: match &policy.node_memory_collect_policy {
                Some(NodeMemoryCollectPolicy::UsageWithHotPageCache) => MemoryUsage::WithHotPages,
                Some(NodeMemoryCollectPolicy::UsageWithPageCache) => MemoryUsage::WithPageCache,
                _ => MemoryUsage::WithoutPageCache,
            },
        }
    }

    /// How long samples must be kept for the report, and those of pods for the training of models over a window.
    pub fn retention(&self, training: Duration) -> Retention {
        let default = Retention::default();
        let longest = self.durations.iter().copied().fold(self.aggregate, Duration::max);
        Retention { node: longest.max(training), pods: self.aggregate.max(training), ..default }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_object_does_not_say_has_its_default_and_what_it_says_its_floor() {
        let default = NodeMetricPolicy::default();
        let secs = Duration::from_secs;
        for (text, policy) in [
            ("{}", default.clone()),
            (r#"{"metricCollectPolicy":{}}"#, default.clone()),
            (
                r#"{"metricCollectPolicy":{"aggregateDurationSeconds":60,"reportIntervalSeconds":30,
                "nodeAggregatePolicy":{"durations":["30s","10m"]},"nodeMemoryCollectPolicy":"usageWithHotPageCache"}}"#,
                NodeMetricPolicy {
                    aggregate: secs(60),
                    report_interval: secs(30),
                    durations: vec![secs(30), secs(600)],
                    memory: MemoryUsage::WithHotPages,
                },
            ),
            (
                r#"{"metricCollectPolicy":{"aggregateDurationSeconds":1,"reportIntervalSeconds":-5,
                "nodeAggregatePolicy":{"durations":["-1s","0s","1000h"]},"nodeMemoryCollectPolicy":"usageWithPageCache"}}"#,
                NodeMetricPolicy {
                    aggregate: secs(60),
                    report_interval: secs(30),
                    durations: vec![secs(7200)],
                    memory: MemoryUsage::WithPageCache,
                },
            ),
            (r#"{"metricCollectPolicy":{"nodeAggregatePolicy":{}}}"#, default.clone()),
        ] {
            let spec: NodeMetricSpec = serde_json::from_str(text).unwrap();
            assert_eq!(NodeMetricPolicy::of(&spec), policy, "{text}");
        }
    }

    #[test]
    fn samples_are_kept_as_long_as_something_needs_them() {
        let policy = NodeMetricPolicy { aggregate: Duration::from_mins(1), ..NodeMetricPolicy::default() };
        let retention = policy.retention(Duration::from_mins(2));
        assert_eq!((retention.node, retention.pods), (Duration::from_mins(30), Duration::from_mins(2)));
    }
}
