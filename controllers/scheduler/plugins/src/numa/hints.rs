//! Which NUMA nodes a pod may have its resources of (`spec/scheduler.md` 3B.4).

use std::collections::BTreeMap;

use koord_scheduling::{NumaMask, ResourceId, ResourceVector};

use super::{allocate::Stock, manager::Hint, node::amplify, policy::Policy, score::Scorer};

impl Stock<'_> {
    /// For each resource that the pod requests and some NUMA node reports, the sets of NUMA nodes that have enough.
    pub(crate) fn hints(&self, policy: Policy, scorer: &Scorer) -> BTreeMap<ResourceId, Vec<Hint>> {
        let requested = self.order.requests.iter().map(|(id, _)| id).filter(|id| self.node.known.contains(id));
        let mut hints: BTreeMap<ResourceId, Vec<Hint>> = requested.map(|id| (id, Vec::new())).collect();
        let all = self.node.numa_nodes().unwrap_or_default();
        for affinity in all.subsets().into_iter().filter(|affinity| self.allocate(Some(*affinity)).is_ok()) {
            let score = scorer.score(&self.requested_of(affinity), &self.total_of(affinity));
            let hint = Hint { affinity: Some(affinity), score, ..Hint::default() };
            for (id, hints) in &mut hints {
                if affinity.iter().all(|node| self.shares.get(&node).is_some_and(|share| share.get(*id) > 0)) {
                    hints.push(hint);
                }
            }
        }
        for hints in hints.values_mut() {
            let size = |hint: &Hint| hint.affinity.map(NumaMask::len);
            let least = hints.iter().map(size).min();
            for hint in hints {
                hint.is_preferred = policy == Policy::Restricted || least == Some(size(hint));
            }
        }
        hints
    }

    /// What pods have of these NUMA nodes, with this one.
    fn requested_of(&self, affinity: NumaMask) -> ResourceVector {
        let mut requested = self.total_of(affinity);
        affinity.iter().filter_map(|node| self.shares.get(&node)).for_each(|share| requested.subtract(share));
        let mut pod = self.order.requests.clone();
        if self.order.cpus.is_some() {
            pod.set(ResourceId::CPU, amplify(pod.get(ResourceId::CPU), self.node.cpu_ratio));
        }
        requested.add(&pod);
        requested
    }

    fn total_of(&self, affinity: NumaMask) -> ResourceVector {
        let mut total = ResourceVector::default();
        affinity.iter().filter_map(|node| self.node.zones.get(&node)).for_each(|zone| total.add(zone));
        total
    }
}
