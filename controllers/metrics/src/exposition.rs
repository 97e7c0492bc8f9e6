//! Which metrics are shown, and with which values of their labels.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use prometheus::proto::{Bucket, Counter, Gauge, Histogram, Metric, MetricFamily, MetricType};

/// The value of a label in the place of all that are not allowed.
const UNEXPECTED: &str = "unexpected";

/// Which metrics are shown, and with which values of their labels. By default all of them, as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposition {
    disabled: BTreeSet<String>,
    /// By metric and label.
    allowed: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Exposition {
    /// Leaves out the metric with this full name.
    pub fn disable(&mut self, metric: impl Into<String>) {
        self.disabled.insert(metric.into());
    }

    /// Allows a label of a metric these values alone, whatever was allowed before. Series with other values are shown as one,
    /// with the value `unexpected`: the sum of them. The label `le` of a histogram is none of its labels.
    pub fn allow(&mut self, metric: &str, label: &str, values: impl IntoIterator<Item = impl Into<String>>) {
        let values = values.into_iter().map(Into::into).collect();
        self.allowed.entry(metric.to_owned()).or_default().insert(label.to_owned(), values);
    }

    /// Leaves of the families what is shown.
    pub(crate) fn apply_to(&self, families: &mut Vec<MetricFamily>) {
        families.retain(|family| !self.disabled.contains(family.name()));
        for family in families {
            if let Some(allowed) = self.allowed.get(family.name()) {
                constrain(family, allowed);
            }
        }
    }
}

/// Leaves the labels of a family only allowed values. A series stays at the place of the first one that became it.
fn constrain(family: &mut MetricFamily, allowed: &BTreeMap<String, BTreeSet<String>>) {
    let kind = family.get_field_type();
    let (mut series, mut places) = (Vec::<Metric>::new(), BTreeMap::<Vec<String>, usize>::new());
    for mut metric in family.take_metric() {
        for pair in metric.mut_label() {
            if allowed.get(pair.name()).is_some_and(|values| !values.contains(pair.value())) {
                pair.set_value(UNEXPECTED.to_owned());
            }
        }
        let values = metric.get_label().iter().map(|pair| pair.value().to_owned()).collect();
        match places.entry(values) {
            Entry::Vacant(place) => {
                place.insert(series.len());
                series.push(metric);
            }
            Entry::Occupied(place) => add(kind, &mut series[*place.get()], &metric),
        }
    }
    family.set_metric(series);
}

/// Adds the amounts of another series of the same family.
fn add(kind: MetricType, sum: &mut Metric, other: &Metric) {
    match kind {
        MetricType::COUNTER => {
            let mut counter = Counter::default();
            counter.set_value(sum.get_counter().get_value() + other.get_counter().get_value());
            sum.set_counter(counter);
        }
        MetricType::GAUGE => {
            let mut gauge = Gauge::default();
            gauge.set_value(sum.get_gauge().get_value() + other.get_gauge().get_value());
            sum.set_gauge(gauge);
        }
        MetricType::HISTOGRAM => {
            let histogram = together(sum.get_histogram(), other.get_histogram());
            sum.set_histogram(histogram);
        }
        // No description is of this kind, and quantiles have no sum.
        MetricType::SUMMARY | MetricType::UNTYPED => {}
    }
}

/// The sum of two histograms of a family: all of them have the same bounds.
fn together(one: &Histogram, other: &Histogram) -> Histogram {
    let buckets = one.get_bucket().iter().zip(other.get_bucket()).map(|(one, other)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(one.upper_bound());
        bucket.set_cumulative_count(one.cumulative_count() + other.cumulative_count());
        bucket
    });
    let mut sum = Histogram::default();
    sum.set_bucket(buckets.collect());
    sum.set_sample_count(one.get_sample_count() + other.get_sample_count());
    sum.set_sample_sum(one.get_sample_sum() + other.get_sample_sum());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audience, Description, Registries};

    const AMOUNT: Description = Description::gauge("amount", &["x", "y"], "Help.");
    const LATENCY: Description = Description::histogram("latency_seconds", &["queue"], &[1.0], "Help.");
    const PODS: Description = Description::counter("pods_total", &["status"], "Help.").to(Audience::Internal);

    /// All metrics, shown so.
    fn page(exposition: Exposition) -> String {
        let metrics = Registries::default();
        let amount = metrics.float_gauge(AMOUNT).unwrap();
        for (x, y, value) in [("1", "q\"{, }", 2.0), ("2", "q", 3.0), ("3", "q", 4.5)] {
            amount.with_label_values(&[x, y]).set(value);
        }
        let latency = metrics.histogram(LATENCY).unwrap();
        for (queue, seconds) in [("active", 0.5), ("backoff", 2.0), ("gated", 0.25)] {
            latency.with_label_values(&[queue]).observe(seconds);
        }
        let pods = metrics.counter(PODS).unwrap();
        for (status, count) in [("bound", 1), ("refused", 2), ("waiting", 3)] {
            pods.with_label_values(&[status]).inc_by(count);
        }
        metrics.show(exposition).unwrap();
        metrics.text(&[Audience::Runtime, Audience::Internal])
    }

    /// The series of a metric on a page.
    fn series<'p>(page: &'p str, metric: &str) -> Vec<&'p str> {
        page.lines().filter(|line| line.starts_with(metric)).collect()
    }

    #[test]
    fn disabled_metrics_are_not_shown() {
        let mut exposition = Exposition::default();
        let all = page(exposition.clone());
        let counts = |page: &str| ["amount", "latency_seconds", "pods_total", "#"].map(|name| series(page, name).len());
        assert_eq!(counts(&all), [3, 12, 3, 6], "{all}");
        for name in ["latency_seconds", "pods_total", "nothing"] {
            exposition.disable(name);
        }
        let shown = page(exposition);
        assert_eq!(counts(&shown), [3, 0, 0, 2], "{shown}");
        assert!(all.starts_with(&shown), "{shown}");
    }

    #[test]
    fn values_that_are_not_allowed_are_one() {
        let mut exposition = Exposition::default();
        exposition.allow("amount", "x", ["1"]);
        exposition.allow("pods_total", "status", ["refused"]);
        let shown = page(exposition.clone());
        let amounts = [r#"amount{x="1",y="q\"{, }"} 2"#, r#"amount{x="unexpected",y="q"} 7.5"#];
        assert_eq!(series(&shown, "amount"), amounts);
        let pods = [r#"pods_total{status="unexpected"} 4"#, r#"pods_total{status="refused"} 2"#];
        assert_eq!(series(&shown, "pods_total"), pods);
        exposition.allow("amount", "x", ["1", "2", "3"]);
        exposition.allow("amount", "y", ["q"]);
        let amounts = [r#"amount{x="1",y="unexpected"} 2"#, r#"amount{x="2",y="q"} 3"#, r#"amount{x="3",y="q"} 4.5"#];
        assert_eq!(series(&page(exposition), "amount"), amounts);
    }

    #[test]
    fn histograms_with_values_that_are_not_allowed_are_one() {
        let mut exposition = Exposition::default();
        exposition.allow("latency_seconds", "queue", ["active"]);
        exposition.allow("latency_seconds", "le", ["2"]);
        let expected = [
            r#"latency_seconds_bucket{queue="active",le="1"} 1"#,
            r#"latency_seconds_bucket{queue="active",le="+Inf"} 1"#,
            r#"latency_seconds_sum{queue="active"} 0.5"#,
            r#"latency_seconds_count{queue="active"} 1"#,
            r#"latency_seconds_bucket{queue="unexpected",le="1"} 1"#,
            r#"latency_seconds_bucket{queue="unexpected",le="+Inf"} 2"#,
            r#"latency_seconds_sum{queue="unexpected"} 2.25"#,
            r#"latency_seconds_count{queue="unexpected"} 2"#,
        ];
        assert_eq!(series(&page(exposition), "latency_seconds"), expected);
    }

    #[test]
    fn what_is_shown_is_decided_once() {
        let metrics = Registries::default();
        metrics.show(Exposition::default()).unwrap();
        assert!(metrics.clone().show(Exposition::default()).is_err(), "a clone has the same registries");
    }
}
