//! How full nodes and NUMA nodes are, as a score (`spec/scheduler.md` 3B.10).

use koord_scheduler_framework::share;
use koord_scheduling::ResourceId;

use super::policy::Fill;

/// Compares by these resources with their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumaScorer<'a> {
    /// Which nodes are best.
    pub fill: Fill,
    /// What counts for this pod.
    pub weights: &'a [(ResourceId, i64)],
}

impl NumaScorer<'_> {
    /// The score of something: of a resource, what is asked of it with the pod, and how much it offers.
    pub fn score(&self, of: impl Fn(ResourceId) -> (i64, i64)) -> i64 {
        self.fill.score(self.weights.iter().map(|(id, weight)| {
            let (requested, total) = of(*id);
            (*weight, requested, total)
        }))
    }
}

impl Fill {
    /// The weighted mean over resources: the weight of each, what is asked of it with the pod, and how much there is. A resource of
    /// which there is none takes no part.
    pub fn score(self, resources: impl Iterator<Item = (i64, i64, i64)>) -> i64 {
        let of_resource = |requested: i64, total: i64| match self {
            Self::LeastAllocated => share(total.saturating_sub(requested), total),
            Self::MostAllocated => share(requested, total),
        };
        let counted = resources.filter(|(_, _, total)| *total != 0);
        let (sum, weights) = counted.fold((0_i64, 0_i64), |(sum, weights), (weight, requested, total)| {
            let of_resource = weight.saturating_mul(of_resource(requested, total));
            (sum.saturating_add(of_resource), weights.saturating_add(weight))
        });
        sum / weights.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weighted_mean_of_what_is_left_or_used_counts() {
        let score = |fill, cpu, memory| {
            let weights = &[(ResourceId::CPU, 3), (ResourceId::MEMORY, 1)];
            NumaScorer { fill, weights }.score(|id| if id == ResourceId::CPU { (cpu, 1000) } else { (memory, 200) })
        };
        assert_eq!(score(Fill::LeastAllocated, 250, 50), 75);
        assert_eq!(score(Fill::MostAllocated, 250, 50), 25);
        assert_eq!(score(Fill::LeastAllocated, 600, 0), (3 * 40 + 100) / 4);
        assert_eq!((score(Fill::LeastAllocated, 2000, 400), score(Fill::MostAllocated, 2000, 400)), (0, 100));
        let none = NumaScorer { fill: Fill::LeastAllocated, weights: &[] };
        assert_eq!((none.score(|_| (1, 9)), score(Fill::MostAllocated, 0, 0)), (0, 0));
        let cpu = NumaScorer { fill: Fill::LeastAllocated, weights: &[(ResourceId::CPU, 1)] };
        assert_eq!(cpu.score(|_| (0, 0)), 0);
        let both = NumaScorer { fill: Fill::LeastAllocated, weights: &[(ResourceId::CPU, 1), (ResourceId::MEMORY, 1)] };
        let cpu_alone = both.score(|id| if id == ResourceId::CPU { (250, 1000) } else { (10, 0) });
        assert_eq!(cpu_alone, 75, "of which there is none takes no part");
    }
}
