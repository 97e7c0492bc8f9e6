//! Smoothed usage of nodes: a short peak moves no pods.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_runtime::clock::Moment;
use koord_scheduling::{ResourceId, ResourceVector};

/// How much of the known value remains after [`PERIOD`]. Both are those of the original, which measures in this period.
const REMAINS: f64 = 0.9;
const PERIOD: Duration = Duration::from_secs(5);
/// A node that was not measured for so long begins anew.
const FORGOTTEN: Duration = Duration::from_mins(5);

/// Exponentially weighted averages, in which a value counts for as long as it was the latest one.
#[derive(Debug, Default)]
pub(super) struct Smoothing(BTreeMap<Arc<str>, (ResourceVector, Moment)>);

impl Smoothing {
    /// Takes measured values in, and replaces them by the averages.
    pub(super) fn smooth(&mut self, measured: &mut BTreeMap<Arc<str>, ResourceVector>, now: Moment) {
        self.0.retain(|_, (_, at)| now.since(*at) < FORGOTTEN);
        for (node, usage) in measured {
            if let Some((known, at)) = self.0.get(node) {
                let remains = REMAINS.powf(now.since(*at).as_secs_f64() / PERIOD.as_secs_f64());
                for resource in [ResourceId::CPU, ResourceId::MEMORY] {
                    usage.set(resource, average(known.get(resource), usage.get(resource), remains));
                }
            }
            self.0.insert(Arc::clone(node), (usage.clone(), now));
        }
    }
}

fn average(known: i64, value: i64, remains: f64) -> i64 {
    (remains * known as f64 + (1.0 - remains) * value as f64).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu: i64) -> ResourceVector {
        let mut usage = ResourceVector::default();
        usage.set(ResourceId::CPU, cpu);
        usage
    }

    /// What comes of values of one node that were measured at these seconds.
    fn smoothed(values: &[(u64, i64)]) -> Vec<i64> {
        let mut smoothing = Smoothing::default();
        let node: Arc<str> = Arc::from("n");
        let smooth = |(second, value): &(u64, i64)| {
            let mut measured = BTreeMap::from([(Arc::clone(&node), usage(*value))]);
            smoothing.smooth(&mut measured, Moment::at(Duration::from_secs(*second)));
            measured[&node].get(ResourceId::CPU)
        };
        values.iter().map(smooth).collect()
    }

    #[test]
    fn every_five_seconds_a_tenth_of_the_difference_is_taken_over() {
        assert_eq!(smoothed(&[(0, 1000), (5, 2000), (10, 2000)]), [1000, 1100, 1190]);
        assert_eq!(smoothed(&[(0, 1399), (5, 1)]), [1399, 1259], "rounded down, as in the original");
    }

    #[test]
    fn how_often_it_is_measured_makes_no_difference() {
        let every_five: Vec<(u64, i64)> =
            (0..=12).map(|step| (step * 5, if step == 0 { 0 } else { 1_000_000 })).collect();
        let (often, seldom) = (smoothed(&every_five), smoothed(&[(0, 0), (60, 1_000_000)]));
        assert!((often[12] - seldom[1]).abs() < 20, "{often:?} {seldom:?}");
    }

    #[test]
    fn a_node_that_was_away_begins_anew() {
        assert_eq!(smoothed(&[(0, 1000), (299, 1000), (600, 9000)])[2], 9000);
    }
}
