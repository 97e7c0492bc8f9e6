//! Gauges whose series go when nobody has set them for a while.

use std::{collections::BTreeMap, ops::Bound, sync::Arc, time::Duration};

use koord_core::clock::{Moment, SharedClock};
use parking_lot::Mutex;
use prometheus::{
    GaugeVec, Result,
    core::{Collector, Desc},
    proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType},
};

use crate::Description;

/// A gauge that forgets a series which nobody has set for some time: of a node that is gone, or of one that
/// another replica looks after now. Cheap to clone.
#[derive(Clone)]
pub struct ExpiringGauge {
    inner: Arc<Inner>,
}

struct Inner {
    description: Description,
    /// Says what it is to a registry; its own series are never used.
    shape: GaugeVec,
    clock: SharedClock,
    life: Duration,
    series: Mutex<BTreeMap<Box<str>, (f64, Moment)>>,
}

/// Ends each value in the key of a series: one text takes half of the memory of several.
const END: char = '\0';

/// The key of a series: the values of its labels.
fn key(values: &[&str]) -> String {
    let mut key = String::with_capacity(values.iter().map(|value| value.len() + 1).sum());
    for value in values {
        key.push_str(value);
        key.push(END);
    }
    key
}

impl ExpiringGauge {
    /// A gauge whose series live for `life` after they were set last.
    pub fn new(description: Description, clock: SharedClock, life: Duration) -> Result<Self> {
        let shape = description.make_float_gauge()?;
        Ok(Self { inner: Arc::new(Inner { description, shape, clock, life, series: Mutex::default() }) })
    }

    /// What it is.
    pub fn description(&self) -> &Description {
        &self.inner.description
    }

    /// Sets the series with these values of the labels, in the order of the description.
    pub fn set(&self, labels: &[&str], value: f64) {
        let now = self.inner.clock.moment();
        let key = key(labels);
        let mut series = self.inner.series.lock();
        match series.get_mut(key.as_str()) {
            Some(known) => *known = (value, now),
            None => drop(series.insert(key.into_boxed_str(), (value, now))),
        }
    }

    /// Takes the series away whose first label has this value.
    pub fn forget(&self, first: &str) {
        let start = key(&[first]);
        let mut series = self.inner.series.lock();
        let after = series.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
        let gone: Vec<_> = after.map(|(key, _)| key).take_while(|key| key.starts_with(&start)).cloned().collect();
        for key in &gone {
            series.remove(key);
        }
    }
}

impl Collector for ExpiringGauge {
    fn desc(&self) -> Vec<&Desc> {
        self.inner.shape.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Inner { description, clock, life, series, .. } = &*self.inner;
        let now = clock.moment();
        let mut series = series.lock();
        series.retain(|_, (_, set)| now.since(*set) < *life);
        let metrics = series.iter().map(|(values, (value, _))| {
            let pairs = description.labels.iter().zip(values.split_terminator(END)).map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name((*name).to_owned());
                pair.set_value(value.to_owned());
                pair
            });
            let mut gauge = Gauge::default();
            gauge.set_value(*value);
            let mut metric = Metric::default();
            metric.set_label(pairs.collect());
            metric.set_gauge(gauge);
            metric
        });
        let mut family = MetricFamily::default();
        family.set_name(description.name.to_owned());
        family.set_help(description.help.to_owned());
        family.set_field_type(MetricType::GAUGE);
        family.set_metric(metrics.collect());
        vec![family]
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use koord_core::clock::ManualClock;

    use super::*;
    use crate::Registries;

    #[test]
    fn a_series_goes_when_nobody_sets_it_or_its_object_is_gone() {
        const AMOUNT: Description = Description::gauge("amount", &["node", "unit"], "Help.");
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let metrics = Registries::default();
        let gauge = ExpiringGauge::new(AMOUNT, clock.clone(), Duration::from_mins(5)).unwrap();
        metrics.adopt(AMOUNT, gauge.clone()).unwrap();
        let lines = || {
            let text = metrics.text(&[AMOUNT.audience]);
            text.lines().filter(|line| line.starts_with("amount")).map(str::to_owned).collect::<Vec<_>>()
        };
        gauge.set(&["b", "byte"], 2.0);
        gauge.set(&["b-2", ""], 3.0);
        clock.advance(Duration::from_mins(4));
        gauge.set(&["a", "byte"], 1.5);
        let all = [r#"amount{node="a",unit="byte"} 1.5"#, r#"amount{node="b",unit="byte"} 2"#];
        assert_eq!(lines()[..2], all);
        gauge.forget("b");
        assert_eq!(lines(), [all[0], r#"amount{node="b-2",unit=""} 3"#]);
        clock.advance(Duration::from_mins(1));
        assert_eq!(lines(), [all[0]], "five minutes after it was set last");
    }
}
