//! What a pod requests and what counts for it, in the numbers that the nodes give to resources.

use koord_resource::ResourceList;
use koord_scheduling::{ResourceId, ResourceNames, ResourceVector};
use smallvec::SmallVec;

/// The requests of a pod. Resources that no NUMA node of any node reports are left out.
#[derive(Clone, Debug)]
pub(super) struct NumberedRequests {
    /// How many resources had a number then: a pod may request one that got its number later.
    pub(super) known: usize,
    pub(super) requests: ResourceVector,
    /// The resources that it requests, in the order of their names.
    pub(super) resources: SmallVec<[ResourceId; 4]>,
    /// The resources that count for it, with their weights.
    pub(super) weights: SmallVec<[(ResourceId, i64); 4]>,
}

impl NumberedRequests {
    pub(super) fn of(names: &ResourceNames, requests: &ResourceList, weights: &[(String, i64)]) -> Self {
        let mut resources: Vec<(&str, ResourceId)> =
            requests.names().filter_map(|name| Some((name, names.get(name)?))).collect();
        resources.sort_unstable();
        let mut vector = ResourceVector::default();
        for (name, id) in &resources {
            vector.set(*id, koord_scheduling::count(name, requests.amount(name)));
        }
        Self {
            known: names.len(),
            requests: vector,
            resources: resources.into_iter().map(|(_, id)| id).collect(),
            weights: counting(requests, weights)
                .filter_map(|(name, weight)| Some((names.get(name)?, weight)))
                .collect(),
        }
    }
}

/// The resources that count for a pod with these requests, of those that have weights: extended ones where it requests them.
pub(super) fn counting<'a>(
    requests: &'a ResourceList,
    weights: &'a [(String, i64)],
) -> impl Iterator<Item = (&'a str, i64)> {
    let is_native = |name: &str| ["cpu", "memory", "ephemeral-storage"].contains(&name);
    let counts = move |name: &str| is_native(name) || requests.amount(name).signum() > 0;
    weights.iter().filter(move |(name, _)| counts(name)).map(|(name, weight)| (&**name, *weight))
}
