//! What a node uses, as far as it is reported, and what is added for pods that the report does not cover yet
//! (`spec/scheduler.md` 3A.3).

use std::{fmt, sync::Arc};

use koord_core::key::ObjectKey;

use super::{Amounts, Dimensions, Incoming, Measure, NodeMetric};

/// The load of one node. Its pods and the report are kept elsewhere and handed over: a pod goes with the report with which it
/// was counted, and with another report all of them are counted anew ([`NodeLoad::of`]).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLoad {
    pods: usize,
    sums: Sums,
}

/// A pod on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedPod {
    /// Its namespace and name, by which its usage is reported.
    pub key: ObjectKey,
    /// Since when it is there, in seconds since 1970.
    pub since: i64,
    /// Until when its estimate counts whatever is reported, in seconds since 1970.
    pub until: Option<i64>,
    /// What it adds, as all of its class do.
    pub adds: Arc<Incoming>,
}

/// What pods amount to, by dimension. An empty vector is nothing.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// What is added to the usage of the node.
    missing: Amounts,
    /// What is added to the usage of production pods.
    missing_prod: Amounts,
    /// Estimates of all pods.
    estimated: Amounts,
    /// Reported usage of production pods.
    used_prod: Amounts,
}

impl NodeLoad {
    /// Of these pods, with this report.
    pub fn of(pods: impl IntoIterator<Item = AssignedPod>, metric: Option<&NodeMetric>) -> Self {
        let mut load = Self::default();
        pods.into_iter().for_each(|pod| load.assign(&pod, metric));
        load
    }

    /// A pod is on the node from now on.
    pub fn assign(&mut self, pod: &AssignedPod, metric: Option<&NodeMetric>) {
        self.pods += 1;
        self.sums.add(pod, metric, 1);
    }

    /// A pod is not on the node any more.
    pub fn remove(&mut self, pod: &AssignedPod, metric: Option<&NodeMetric>) {
        self.pods = self.pods.saturating_sub(1);
        self.sums.add(pod, metric, -1);
    }

    /// What is added for pods that the report does not cover yet, and of that for production pods, by dimension.
    pub fn missing(&self, dimensions: &Dimensions) -> [Amounts; 2] {
        [&self.sums.missing, &self.sums.missing_prod].map(|sum| plus(dimensions.zero(), sum, 1))
    }

    /// Estimates of all pods, and reported usage of production pods, by dimension.
    pub fn known(&self, dimensions: &Dimensions) -> [Amounts; 2] {
        [&self.sums.estimated, &self.sums.used_prod].map(|sum| plus(dimensions.zero(), sum, 1))
    }

    /// What is used, with what is added for pods that the report does not cover yet. None where nothing is reported.
    pub fn usage(
        &self,
        metric: &NodeMetric,
        measure: Measure<'_>,
        includes_system: bool,
        dimensions: &Dimensions,
    ) -> Option<Amounts> {
        let node = metric.node.as_ref()?;
        let reported = match measure {
            Measure::Prod => {
                let used = plus(dimensions.zero(), &self.sums.used_prod, 1);
                let used = if includes_system { plus(used, &node.system, 1) } else { used };
                return Some(plus(used, &self.sums.missing_prod, 1));
            }
            Measure::Average => Some(&node.average),
            Measure::Aggregated(type_, length) => {
                let average = length.as_nanos() == 0;
                node.aggregated(type_, length).or_else(|| average.then_some(&node.average))
            }
        };
        let zero = dimensions.zero();
        Some(match reported {
            Some(usage) => plus(plus(zero, usage, 1), &self.sums.missing, 1),
            None => plus(zero, &self.sums.estimated, 1),
        })
    }
}

impl fmt::Display for NodeLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums { missing, missing_prod, estimated, used_prod } = &self.sums;
        let pods = self.pods;
        write!(
            f,
            "{pods} pods, estimated {estimated:?}, unreported {missing:?} and {missing_prod:?}, prod {used_prod:?}"
        )
    }
}

impl Sums {
    /// Adds what one pod amounts to, or subtracts it.
    fn add(&mut self, pod: &AssignedPod, metric: Option<&NodeMetric>, sign: i64) {
        let add = |sum: &mut Amounts, amounts: &Amounts| *sum = plus(std::mem::take(sum), amounts, sign);
        let reported = metric.and_then(|metric| metric.pod(&pod.key));
        let usage = reported.map(|usage| within_reason(usage.average.clone()));
        add(&mut self.estimated, &pod.adds.estimate);
        let counts = usage.is_none() || metric.is_none_or(|metric| pod.outlasts(metric));
        if counts {
            add(&mut self.missing, &pod.missing(usage.as_ref()));
        }
        if !pod.adds.is_prod {
            return;
        }
        match usage.filter(|_| reported.is_some_and(|usage| usage.is_prod)) {
            Some(usage) => {
                add(&mut self.used_prod, &usage);
                if counts {
                    add(&mut self.missing_prod, &pod.missing(Some(&usage)));
                }
            }
            // Reported as another kind of pod, it is not part of the usage of production pods.
            None => add(&mut self.missing_prod, &pod.adds.estimate),
        }
    }
}

impl AssignedPod {
    /// Whether the estimate counts although usage is reported: the pod was not there for the whole time of the report.
    fn outlasts(&self, metric: &NodeMetric) -> bool {
        metric.updated.is_none_or(|updated| {
            updated.saturating_sub(metric.interval_seconds) < self.since
                || self.until.is_some_and(|until| until > updated)
        })
    }

    /// By how much the estimate exceeds the usage.
    fn missing(&self, usage: Option<&Amounts>) -> Amounts {
        let used = |index| usage.and_then(|usage| usage.get(index)).copied().unwrap_or(0);
        self.adds
            .estimate
            .iter()
            .enumerate()
            .map(|(index, estimate)| estimate.saturating_sub(used(index)).max(0))
            .collect()
    }
}

/// Amounts that leave the sum of all pods of a node within the numbers, so that it is exact whichever pods come and go.
pub(super) fn within_reason(mut amounts: Amounts) -> Amounts {
    const AMOUNT_MAX: i64 = 1 << 50;
    amounts.iter_mut().for_each(|amount| *amount = (*amount).clamp(-AMOUNT_MAX, AMOUNT_MAX));
    amounts
}

/// Trailing zeros mean nothing.
impl PartialEq for Sums {
    fn eq(&self, other: &Self) -> bool {
        let same =
            |one: &Amounts, another: &Amounts| plus(one.clone(), another, -1).iter().all(|difference| *difference == 0);
        same(&self.missing, &other.missing)
            && same(&self.missing_prod, &other.missing_prod)
            && same(&self.estimated, &other.estimated)
            && same(&self.used_prod, &other.used_prod)
    }
}

/// The sum, or the difference for a negative sign.
pub(super) fn plus(mut sum: Amounts, amounts: &Amounts, sign: i64) -> Amounts {
    if sum.len() < amounts.len() {
        sum.resize(amounts.len(), 0);
    }
    for (sum, amount) in sum.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(amount.saturating_mul(sign));
    }
    sum
}

#[cfg(test)]
mod tests {
    use koord_resource::Duration;
    use koord_types::node_metric::AggregationType;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn metric(updated: &str, pods: &Value) -> NodeMetric {
        let usage = json!({"resources": {"cpu": "30", "memory": "10"}});
        let p95 = json!([{"duration": "5m", "usage": {"p95": {"resources": {"cpu": "50"}}}}]);
        let node = json!({
            "nodeUsage": usage,
            "systemUsage": {"resources": {"cpu": "2"}},
            "aggregatedNodeUsages": p95,
        });
        let mut object = json!({"metadata": {"name": "n"}, "status": {"nodeMetric": node, "podsMetric": pods}});
        if !updated.is_empty() {
            object["status"]["updateTime"] = json!(format!("1970-01-01T{updated}Z"));
        }
        NodeMetric::of(&serde_json::from_value(object).unwrap(), &Dimensions::of([]))
    }

    fn reported(name: &str, cpu: &str, priority: &str) -> Value {
        json!({"name": name, "namespace": "ns", "priority": priority, "podUsage": {"resources": {"cpu": cpu}}})
    }

    fn pod(name: &str, cpu: i64, since: i64) -> AssignedPod {
        AssignedPod { key: ObjectKey::new("ns", name), since, until: None, adds: adds(cpu, true) }
    }

    fn adds(cpu: i64, is_prod: bool) -> Arc<Incoming> {
        Arc::new(Incoming { estimate: [cpu, 0].into_iter().collect(), is_prod })
    }

    /// The cpu in use, with these pods and this report.
    fn used(pods: &[AssignedPod], metric: &NodeMetric, measure: Measure<'_>) -> Option<i64> {
        let dimensions = Dimensions::of([]);
        let load = NodeLoad::of(pods.iter().cloned(), Some(metric));
        load.usage(metric, measure, false, &dimensions).map(|usage| usage[0])
    }

    #[test]
    fn a_pod_counts_by_its_estimate_until_a_report_covers_it() {
        let at = |updated: &str, pods: Value| metric(updated, &pods);
        let average = |metric: &NodeMetric, since| used(&[pod("a", 10_000, since)], metric, Measure::Average).unwrap();
        assert_eq!(average(&at("00:10:00", json!([])), 0), 40_000, "not reported");
        let with = |updated, cpu| at(updated, json!([reported("a", cpu, "koord-prod")]));
        assert_eq!(average(&with("00:10:00", "4"), 540), 30_000, "there for the whole minute");
        assert_eq!(average(&with("00:10:00", "4"), 541), 36_000, "there for less than the minute");
        assert_eq!(average(&with("00:10:00", "14"), 541), 30_000, "it uses more than was estimated");
        assert_eq!(average(&with("", "4"), 0), 36_000, "a report without a time covers nobody");
        let empty = json!([{"name": "a", "namespace": "ns", "podUsage": {}}]);
        assert_eq!(average(&at("00:10:00", empty), 0), 40_000, "an empty report is none");
    }

    #[test]
    fn an_estimate_may_count_for_a_fixed_time() {
        let metric = metric("00:10:00", &json!([reported("a", "4", "koord-prod")]));
        let until = |until| {
            let pod = AssignedPod { until: Some(until), ..pod("a", 10_000, 0) };
            used(&[pod], &metric, Measure::Average).unwrap()
        };
        assert_eq!((until(600), until(601)), (30_000, 36_000));
    }

    #[test]
    fn production_usage_is_that_of_pods_which_are_and_are_reported_as_production() {
        let pods = json!([
            reported("a", "4", "koord-prod"),
            reported("b", "5", "koord-batch"),
            reported("c", "6", "koord-prod")
        ]);
        let metric = metric("00:10:00", &pods);
        let prod = |pods: &[AssignedPod]| used(pods, &metric, Measure::Prod).unwrap();
        assert_eq!(prod(&[pod("a", 10_000, 0)]), 4000);
        assert_eq!(prod(&[pod("a", 10_000, 599)]), 10_000);
        assert_eq!(prod(&[pod("b", 10_000, 0)]), 10_000, "reported as another kind");
        assert_eq!(prod(&[AssignedPod { adds: adds(10_000, false), ..pod("c", 10_000, 0) }]), 0);
        let dimensions = Dimensions::of([]);
        let with_system = NodeLoad::default().usage(&metric, Measure::Prod, true, &dimensions);
        assert_eq!(with_system.map(|usage| usage[0]), Some(2000));
    }

    #[test]
    fn a_value_that_is_not_reported_is_the_average_or_for_a_certain_time_the_estimates() {
        let metric = metric("00:10:00", &json!([reported("a", "4", "koord-prod")]));
        let pods = [pod("a", 10_000, 0), pod("b", 1000, 0)];
        let value = |type_: &AggregationType, minutes: i64| {
            used(&pods, &metric, Measure::Aggregated(type_, Duration::from_secs(60 * minutes))).unwrap()
        };
        assert_eq!(value(&AggregationType::P95, 5), 51_000, "b is not reported");
        assert_eq!(value(&AggregationType::P95, 0), 51_000);
        assert_eq!(value(&AggregationType::P50, 0), 31_000);
        assert_eq!(value(&AggregationType::P50, 5), 11_000);
        assert_eq!(used(&pods, &NodeMetric::default(), Measure::Average), None);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_pods_whatever_happened(
            steps in proptest::collection::vec((0..4_usize, 0..4_u8, 0..20_i64, 500..700_i64, any::<bool>()), 1..30),
        ) {
            let names = ["a", "b", "c", "d"];
            let mut reports = vec![None];
            for priority in ["koord-prod", "koord-batch"] {
                let pods = json!([reported("a", "4", priority), reported("b", "9", "koord-prod")]);
                reports.push(Some(metric("00:10:00", &pods)));
            }
            let (mut load, mut report, mut known) = (NodeLoad::default(), None, std::collections::BTreeMap::new());
            for (which, action, cpu, since, is_prod) in steps {
                let pod = AssignedPod { adds: adds(cpu * 1000, is_prod), ..pod(names[which], cpu * 1000, since) };
                match action {
                    0 => {
                        if let Some(gone) = known.remove(&which) {
                            load.remove(&gone, report);
                        }
                    }
                    1 => {
                        report = reports[which % 3].as_ref();
                        load = NodeLoad::of(known.values().cloned(), report);
                    }
                    _ => {
                        load.assign(&pod, report);
                        if let Some(replaced) = known.insert(which, pod) {
                            load.remove(&replaced, report);
                        }
                    }
                }
                let rebuilt = NodeLoad::of(known.values().cloned(), report);
                prop_assert_eq!(&load, &rebuilt);
            }
        }
    }
}
