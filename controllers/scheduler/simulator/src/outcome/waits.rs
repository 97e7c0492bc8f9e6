//! How long pods waited from when they came until they had a node.

use std::time::Duration;

use serde::Serialize;

use super::seconds;
use crate::pods::Pods;

/// How long pods waited. Pods that got a node count until then.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// Half of the placed pods waited no longer.
    pub p50_s: f64,
    /// Nine tenths of them.
    pub p90_s: f64,
    /// 99 of 100.
    pub p99_s: f64,
    /// The longest wait of a placed pod.
    pub max_s: f64,
    /// How long the pods that wait at the end have waited at most.
    pub waiting_max_s: f64,
    /// How many placed pods waited how long.
    pub histogram: Vec<Bucket>,
}

/// Placed pods that waited no longer than this, and longer than the bucket before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The longest wait; none in the last bucket.
    pub up_to_s: Option<f64>,
    /// How many pods.
    pub pods: usize,
}

/// The upper bounds of the buckets, in seconds.
const BOUNDS_S: [u64; 7] = [0, 1, 10, 60, 600, 3600, 86_400];

impl Waits {
    pub(super) fn of(pods: &Pods, lasted: Duration) -> Self {
        let placed = pods.iter().filter_map(|(_, record)| Some((record.arrived, record.placed.as_ref()?.0)));
        let mut waits: Vec<Duration> = placed.map(|(arrived, placed)| placed.saturating_sub(arrived)).collect();
        waits.sort();
        let waiting = pods.iter().filter(|(_, record)| record.waits());
        let waiting_max = waiting.map(|(_, record)| lasted.saturating_sub(record.arrived)).max();
        let at = |percent: usize| seconds(percentile(&waits, percent));
        let (p50_s, p90_s, p99_s, max_s) = (at(50), at(90), at(99), at(100));
        let waiting_max_s = seconds(waiting_max.unwrap_or_default());
        Self { p50_s, p90_s, p99_s, max_s, waiting_max_s, histogram: histogram(&waits) }
    }
}

/// The smallest wait that so many percent do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn histogram(waits: &[Duration]) -> Vec<Bucket> {
    let bounds = BOUNDS_S.map(Duration::from_secs);
    let below = |bound: &Duration| waits.iter().filter(|wait| *wait <= bound).count();
    let mut before = 0;
    let mut buckets = Vec::new();
    for bound in &bounds {
        let pods = below(bound);
        buckets.push(Bucket { up_to_s: Some(seconds(*bound)), pods: pods - before });
        before = pods;
    }
    buckets.push(Bucket { up_to_s: None, pods: waits.len() - before });
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_waits_of_pods_and_buckets_hold_all_of_them() {
        let waits: Vec<Duration> = [0, 0, 1, 5, 100_000].map(Duration::from_secs).to_vec();
        let at = |percent| percentile(&waits, percent).as_secs();
        assert_eq!([at(50), at(60), at(80), at(90), at(100)], [1, 1, 5, 100_000, 100_000]);
        assert_eq!(percentile(&[], 50), Duration::ZERO);
        let pods: Vec<usize> = histogram(&waits).iter().map(|bucket| bucket.pods).collect();
        assert_eq!(pods, [2, 1, 1, 0, 0, 0, 0, 1]);
    }
}
