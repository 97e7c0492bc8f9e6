//! Which NUMA nodes a pod may have its resources of (`spec/scheduler.md` 3B.4).

use koord_scheduling::{NumaMask, ResourceId};
use smallvec::SmallVec;

use super::topology_manager::{Rules, TopologyHint};
use crate::numa::{allocate::Stock, node::amplify, policy::Policy, score::NumaScorer};

/// Sets of NUMA nodes that have enough for a pod, each with how good it is.
pub type Sets = SmallVec<[(NumaMask, i64); 4]>;

impl Stock<'_> {
    /// The NUMA nodes that alone give the pod everything, in the order of their numbers; none where the NUMA nodes report nothing that
    /// the pod requests. The policy SingleNUMANode is fulfilled by each of them, where no other plugin has a say.
    pub fn alone(&self, rules: Rules) -> impl Iterator<Item = NumaMask> {
        let has_requests = self.requests().next().is_some();
        let singles = rules.all.singles().filter(move |_| has_requests);
        singles.filter(move |affinity| rules.keep_apart(*affinity) && self.givers(Some(*affinity)).is_some())
    }

    /// The one of them that the topology manager takes: the best, and of those the first.
    pub fn best_alone(&self, rules: Rules, scorer: &NumaScorer<'_>) -> Option<NumaMask> {
        let better = |best: Option<(NumaMask, i64)>, affinity| {
            let score = self.score_of(affinity, scorer);
            best.filter(|(_, of_best)| score <= *of_best).or(Some((affinity, score)))
        };
        self.alone(rules).fold(None, better).map(|(affinity, _)| affinity)
    }

    /// The sets that have enough of at most so many NUMA nodes.
    pub fn sets(&self, nodes_max: u32, scorer: &NumaScorer<'_>) -> Sets {
        let all = self.node.numa_nodes();
        let mut sets = Sets::new();
        for affinity in all.subsets().take_while(|affinity| affinity.len() <= nodes_max) {
            if self.givers(Some(affinity)).is_some() {
                sets.push((affinity, self.score_of(affinity, scorer)));
            }
        }
        sets
    }

    /// Those of some sets that are hints for a resource; none where the pod does not request it of NUMA nodes.
    pub fn hints<'s>(
        &'s self,
        sets: &'s Sets,
        resource: ResourceId,
        policy: Policy,
    ) -> Option<impl Iterator<Item = TopologyHint> + 's> {
        if self.order.requests.get(resource) == 0 || !self.node.known.contains(&resource) {
            return None;
        }
        let has_some = move |affinity: NumaMask| self.zones(affinity).all(|(_, share)| share.get(resource) > 0);
        let mut sets = sets.iter().filter(move |(affinity, _)| has_some(*affinity)).peekable();
        // The sets come by size.
        let least = sets.peek().map(|(affinity, _)| affinity.len());
        let is_preferred = move |affinity: NumaMask| policy == Policy::Restricted || Some(affinity.len()) == least;
        Some(sets.map(move |(affinity, score)| TopologyHint {
            affinity: Some(*affinity),
            is_preferred: is_preferred(*affinity),
            is_unsatisfied: false,
            score: *score,
        }))
    }

    /// How good NUMA nodes are, with the pod on them.
    fn score_of(&self, affinity: NumaMask, scorer: &NumaScorer<'_>) -> i64 {
        scorer.score(|resource| {
            let zones = || self.zones(affinity);
            let total = zones().fold(0_i64, |sum, (zone, _)| sum.saturating_add(zone.total.get(resource)));
            let used = zones().fold(total, |rest, (_, share)| rest.saturating_sub(share.get(resource)));
            let pod = self.order.requests.get(resource);
            let is_bound = resource == ResourceId::CPU && self.order.cpus.is_some();
            let pod = if is_bound { amplify(pod, self.node.cpu_ratio) } else { pod };
            (used.saturating_add(pod), total)
        })
    }
}
