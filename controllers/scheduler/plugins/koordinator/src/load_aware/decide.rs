//! Whether a node takes a pod by its load, and how good it is (`spec/scheduler.md` 3A.4 and 3A.5).

use koord_scheduler_framework::SCORE_MAX;

use super::{Amounts, Expired, LoadAwareSettings, Measure, NodeLoad, NodeMetric, Thresholds, node_load::plus};

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What it has, by dimension.
    pub capacity: &'a Amounts,
    /// Which usage of it is too much.
    pub thresholds: &'a Thresholds,
    pub load: &'a NodeLoad,
    /// The report; none where there is no NodeMetric.
    pub metric: Option<&'a NodeMetric>,
    /// Whether the report is too old, or has no time.
    pub is_expired: bool,
}

/// What pods of a class add to the load of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// What it is estimated to use.
    pub estimate: Amounts,
    /// Whether it is a production pod.
    pub is_prod: bool,
}

/// Why a node is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooBusy {
    /// Its report is too old.
    Expired,
    /// Nothing was ever reported.
    Unreported,
    /// It would use too much of this dimension.
    Average(usize),
    /// It would use too much of this dimension, by another value than the average.
    Aggregated(usize),
}

impl LoadAwareSettings {
    /// Whether the node takes the pod.
    pub fn check(&self, node: View<'_>, pod: &Incoming) -> Result<(), TooBusy> {
        let Some((thresholds, measure)) = node.thresholds.of_pod(pod.is_prod) else { return Ok(()) };
        let Some(metric) = node.metric else { return Ok(()) };
        match self.expired {
            Expired::Refused if node.is_expired => {
                return Err(if metric.updated.is_some() { TooBusy::Expired } else { TooBusy::Unreported });
            }
            Expired::Accepted if node.is_expired => return Ok(()),
            _ => {}
        }
        let Some(used) = self.used(node, metric, measure, pod) else { return Ok(()) };
        let mut bounds = thresholds.iter().zip(node.capacity).zip(&used);
        let over = bounds.position(|((threshold, capacity), used)| {
            *threshold != 0 && *capacity != 0 && percent(*used, *capacity) > *threshold
        });
        match (over, measure) {
            (None, _) => Ok(()),
            (Some(index), Measure::Aggregated(..)) => Err(TooBusy::Aggregated(index)),
            (Some(index), Measure::Average | Measure::Prod) => Err(TooBusy::Average(index)),
        }
    }

    /// Of a node that is too busy for the pod: what would be used of a dimension in percent, and its threshold.
    pub(super) fn compared(&self, node: View<'_>, pod: &Incoming, index: usize) -> Option<(i64, i64)> {
        let (thresholds, measure) = node.thresholds.of_pod(pod.is_prod)?;
        let used = self.used(node, node.metric?, measure, pod)?;
        Some((percent(*used.get(index)?, *node.capacity.get(index)?), *thresholds.get(index)?))
    }

    /// How good the node is for the pod: the more is left the better. 0 where nothing recent is reported.
    pub fn score(&self, node: View<'_>, pod: &Incoming) -> i64 {
        let metric = node.metric.filter(|_| !node.is_expired);
        let used = metric.and_then(|metric| self.used(node, metric, self.scored(pod.is_prod), pod));
        let Some(used) = used else { return 0 };
        let left = used.iter().zip(node.capacity).map(|(used, capacity)| share_left(*used, *capacity));
        let left: Amounts = left.collect();
        // The dominant resource is the scarcest of all, of those too that have no weight of their own.
        let scarcest = left.iter().copied().min().unwrap_or(0);
        let of_weights = self.weights.iter().zip(left.iter().copied()).chain([(&self.dominant_weight, scarcest)]);
        let (sum, weights) = of_weights.fold((0_i64, 0_i64), |(sum, weights), (weight, left)| {
            (sum.saturating_add(weight.saturating_mul(left)), weights.saturating_add(*weight))
        });
        if weights <= 0 { 0 } else { sum / weights }
    }

    /// What would be used with the pod.
    fn used(&self, node: View<'_>, metric: &NodeMetric, measure: Measure<'_>, pod: &Incoming) -> Option<Amounts> {
        let used = node.load.usage(metric, measure, self.prod_includes_system, &self.dimensions)?;
        Some(plus(used, &pod.estimate, 1))
    }
}

fn percent(used: i64, capacity: i64) -> i64 {
    (used as f64 / capacity as f64 * 100.0).round() as i64
}

fn share_left(used: i64, capacity: i64) -> i64 {
    if capacity <= 0 || used > capacity {
        return 0;
    }
    let left = (i128::from(capacity) - i128::from(used)) * i128::from(SCORE_MAX) / i128::from(capacity);
    i64::try_from(left).unwrap_or(SCORE_MAX).min(SCORE_MAX)
}

#[cfg(test)]
mod tests {
    use koord_config::scheduler::LoadAwareSchedulingArgs;
    use serde_json::{Value, json};
    use smallvec::smallvec;

    use super::*;
    use crate::load_aware::Dimensions;

    fn settings(args: &Value) -> LoadAwareSettings {
        let args: LoadAwareSchedulingArgs = koord_config::arguments(args).unwrap();
        LoadAwareSettings::from(&args)
    }

    fn metric(cpu: &str, memory: &str) -> NodeMetric {
        let usage = json!({"nodeUsage": {"resources": {"cpu": cpu, "memory": memory}}});
        let object = json!({"metadata": {"name": "n"}, "status": {"nodeMetric": usage}});
        NodeMetric::of(&serde_json::from_value(object).unwrap(), &Dimensions::of([]))
    }

    /// The decision and the score about a node of 96 cores and 512 GiB for a pod of 16 cores and 32 GiB.
    fn decide(args: &Value, metric: Option<&NodeMetric>, is_expired: bool) -> (Result<(), TooBusy>, i64) {
        let settings = settings(args);
        let amounts = |cpu: i64, memory: i64| {
            settings.dimensions.each(|name| match name {
                "cpu" => cpu,
                "memory" => memory,
                _ => 0,
            })
        };
        let (capacity, load) = (amounts(96_000, 512 << 30), NodeLoad::default());
        let node = View { capacity: &capacity, thresholds: &settings.thresholds, load: &load, metric, is_expired };
        let pod = Incoming { estimate: amounts(13_600, (32 << 30) * 7 / 10), is_prod: true };
        (settings.check(node, &pod), settings.score(node, &pod))
    }

    #[test]
    fn the_more_is_left_the_better_is_the_node() {
        let idle = metric("0", "0");
        assert_eq!(decide(&json!({}), Some(&idle), false).1, 90);
        assert_eq!(decide(&json!({}), Some(&metric("32", "10Gi")), false).1, 72);
        assert_eq!(decide(&json!({}), Some(&idle), true).1, 0);
        assert_eq!(decide(&json!({}), None, false).1, 0);
        assert_eq!(decide(&json!({}), Some(&NodeMetric::default()), false).1, 0);
        assert_eq!(decide(&json!({"dominantResourceWeight": 10}), Some(&idle), false).1, 85);
        let unknown = json!({"dominantResourceWeight": 1, "supportedResources": ["example.com/x"]});
        assert_eq!(decide(&unknown, Some(&idle), false).1, 0, "the scarcest is one that the node does not have");
    }

    #[test]
    fn a_pod_that_requests_nothing_leaves_almost_all_of_an_idle_node() {
        let settings = settings(&json!({}));
        let capacity: Amounts = smallvec![96_000, 512 << 30];
        let (load, metric, thresholds) = (NodeLoad::default(), metric("0", "0"), &settings.thresholds);
        let node = View { capacity: &capacity, thresholds, load: &load, metric: Some(&metric), is_expired: false };
        let pod = Incoming { estimate: smallvec![250, 200 << 20], is_prod: true };
        assert_eq!(settings.score(node, &pod), 99);
    }

    #[test]
    fn a_node_above_a_threshold_is_refused_by_the_first_resource_that_is_over() {
        let checked = |args: Value, cpu: &str, memory: &str| decide(&args, Some(&metric(cpu, memory)), false).0;
        // 13.6 of 96 cores are estimated for the pod.
        assert_eq!(checked(json!({}), "49200m", "0"), Ok(()), "65.4 percent");
        assert_eq!(checked(json!({}), "49300m", "0"), Err(TooBusy::Average(0)), "65.5 percent");
        assert_eq!(checked(json!({}), "90", "510Gi"), Err(TooBusy::Average(0)));
        assert_eq!(checked(json!({}), "0", "510Gi"), Err(TooBusy::Average(1)));
        assert_eq!(checked(json!({}), "60", "510Gi"), Err(TooBusy::Average(0)), "cpu is over with the pod alone");
        let aggregated = json!({"usageThresholds": {"cpu": 10}, "usageAggregationType": "p95"});
        assert_eq!(checked(json!({"aggregated": aggregated}), "0", "510Gi"), Err(TooBusy::Aggregated(0)));
        assert_eq!(checked(json!({"prodUsageThresholds": {"cpu": 14}}), "90", "510Gi"), Ok(()));
        assert_eq!(checked(json!({"prodUsageThresholds": {"cpu": 13}}), "0", "0"), Err(TooBusy::Average(0)));
        assert_eq!(checked(json!({"usageThresholds": {"cpu": 0}}), "90", "510Gi"), Ok(()));
    }

    #[test]
    fn an_expired_report_refuses_or_accepts_but_only_where_there_are_thresholds() {
        let (busy, never) = (metric("90", "510Gi"), NodeMetric::default());
        let reported = NodeMetric { updated: Some(1), ..busy.clone() };
        let checked = |args: Value, metric| decide(&args, metric, true).0;
        assert_eq!(checked(json!({}), Some(&reported)), Err(TooBusy::Expired));
        assert_eq!(checked(json!({}), None), Ok(()), "no report at all");
        assert_eq!(checked(json!({"enableScheduleWhenNodeMetricsExpired": true}), Some(&busy)), Ok(()));
        assert_eq!(checked(json!({"filterExpiredNodeMetrics": false}), Some(&busy)), Err(TooBusy::Average(0)));
        assert_eq!(checked(json!({"usageThresholds": {"cpu": 0, "memory": 0}}), Some(&busy)), Ok(()));
        assert_eq!(checked(json!({}), Some(&never)), Err(TooBusy::Unreported), "never reported");
        assert_eq!(checked(json!({"filterExpiredNodeMetrics": false}), Some(&never)), Ok(()));
    }

    #[test]
    fn what_the_node_does_not_have_is_not_compared() {
        let settings = settings(&json!({}));
        let (capacity, load, metric) = (Dimensions::of([]).zero(), NodeLoad::default(), metric("90", "510Gi"));
        let thresholds = &settings.thresholds;
        let node = View { capacity: &capacity, thresholds, load: &load, metric: Some(&metric), is_expired: false };
        let pod = Incoming { estimate: smallvec![1, 1], is_prod: false };
        assert_eq!((settings.check(node, &pod), settings.score(node, &pod)), (Ok(()), 0));
    }
}
