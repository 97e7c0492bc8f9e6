//! The score of a node: how much of it is requested with the pod, by the strategy.

use koord_scheduler_framework::{SCORE_MAX, cluster::Cluster, columns::Row, share};
use koord_scheduling::ResourceId;

use super::Strategy;
use crate::rated::Rate;

/// How full a node is with a pod, by the resources that count for it.
pub(super) struct Allocation {
    pub(super) strategy: Strategy,
    pub(super) resources: Vec<Counted>,
}

/// A resource that counts for this pod.
pub(super) struct Counted {
    pub(super) id: ResourceId,
    pub(super) weight: i64,
    /// What the pod adds to it.
    pub(super) request: i64,
    /// Which assumed usage is compared instead of requests.
    pub(super) assumed: Option<usize>,
}

impl Rate for Allocation {
    fn rate(&self, cluster: &Cluster, row: Row, twice: impl Fn(ResourceId) -> i64) -> i64 {
        let assumed_usage = cluster.assumed_usage(row);
        let (allocatable, requested) = (cluster.allocatable_on(row), cluster.requested_on(row));
        let (mut score, mut weights) = (0_i64, 0_i64);
        for Counted { id, weight, request, assumed } in &self.resources {
            let offered = allocatable.get(*id);
            if offered <= 0 {
                continue;
            }
            let before = assumed.map_or_else(|| requested.get(*id), |which| assumed_usage[which]);
            let before = before.saturating_sub(twice(*id));
            let of_resource = self.strategy.score(before.saturating_add(*request), offered);
            // A line may give 0, which counts as little as a resource that is not there.
            if matches!(self.strategy, Strategy::RequestedToCapacityRatio(_)) && of_resource <= 0 {
                continue;
            }
            score = score.saturating_add(of_resource.saturating_mul(*weight));
            weights = weights.saturating_add(*weight);
        }
        match (weights, &self.strategy) {
            (0, _) => 0,
            (_, Strategy::RequestedToCapacityRatio(_)) => score.saturating_add(weights / 2) / weights,
            _ => score / weights,
        }
    }
}

impl Strategy {
    /// The score of one resource.
    fn score(&self, requested: i64, offered: i64) -> i64 {
        match self {
            Self::LeastAllocated if requested > offered => 0,
            Self::LeastAllocated => share(offered.saturating_sub(requested), offered),
            Self::MostAllocated => share(requested, offered),
            Self::RequestedToCapacityRatio(points) => {
                let utilization = if requested > offered { 100 } else { share(requested, offered) };
                on_line(points, utilization)
            }
        }
    }
}

/// The score at a utilisation, on the line through points whose scores go to 10.
fn on_line(points: &[(i64, i64)], utilization: i64) -> i64 {
    const SCALE: i64 = SCORE_MAX / 10;
    let mut before: Option<(i64, i64)> = None;
    for (at, score) in points.iter().map(|(at, score)| (*at, score * SCALE)) {
        if utilization <= at {
            return match before {
                None => score,
                Some((left, low)) => low + (score - low) * (utilization - left) / (at - left).max(1),
            };
        }
        before = Some((at, score));
    }
    before.map_or(0, |(_, score)| score)
}
