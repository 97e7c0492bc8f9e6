//! How the domains of one constraint become more alike.

use std::{collections::BTreeMap, sync::Arc};

use koord_descheduler_framework::{Pass, Pod, PodId, Reason, ReasonCode, Refusal};

use super::{
    constraint::{Constraint, Constraints},
    destination::Destinations,
    index::Index,
    sizes::Sizes,
};

/// A pod of a domain that has more than domains have on average.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    pod: PodId,
    class: usize,
    /// The position of its node.
    at: usize,
}

/// The domains of a constraint by their size.
struct Domains {
    /// The numbers of the domains, in the order of their sizes.
    numbers: Vec<usize>,
    sizes: Sizes,
    /// The pods of each that may go, what goes first at the end.
    candidates: Vec<Vec<Candidate>>,
    /// By the number of a domain: whether it had more than domains have on average.
    is_large: Vec<bool>,
}

/// Evicts pods such that the domains of a constraint differ as little as they may.
pub(super) fn rebalance(
    pass: &mut Pass<'_>,
    index: &Index<'_>,
    constraints: &mut Constraints<'_>,
    number: usize,
    has_node_fit: bool,
) {
    // Like the original, a constraint that only pods have which may not be evicted is not enforced.
    let owners: Vec<PodId> = {
        let owners = constraints.all[number].owners.iter();
        owners.flat_map(|class| index.pods_of(*class)).map(|(id, _)| *id).collect()
    };
    if !owners.into_iter().any(|id| !pass.is_evicted(id) && pass.filter(id)) {
        if pass.wants_verdicts() {
            let others = constraints.all[number].pods(index).map(|(id, ..)| id);
            others.for_each(|id| pass.leave(id, ReasonCode::NoSpreadConstraint));
        }
        return;
    }
    let (mut domains, mut destinations) = domains(pass, index, constraints, number, has_node_fit);
    let smallest = constraints.all[number].smallest();
    while let Some(wanted) = domains.sizes.next() {
        let mut moved = 0;
        while moved < wanted.count
            && let Some(candidate) = domains.candidates[wanted.from].pop()
        {
            let Candidate { pod, class, at } = candidate;
            if !pass.filter(pod) {
                continue;
            }
            if let Err(refusal) = destinations.fit(pod, class) {
                pass.leave(pod, refusal);
                continue;
            }
            let is_of_several = constraints.counting[class].len() > 1;
            let mut to = None;
            if is_of_several {
                to = destinations.best(constraints, number, pod, class, at);
                if to.is_none() {
                    let refusal = Refusal::new(ReasonCode::AnotherConstraintWorsens);
                    pass.leave(pod, refusal.with("constraints", constraints.counting[class].len()));
                    continue;
                }
            }
            if !pass.pre_eviction_filter(pod) {
                continue;
            }
            // An eviction that fails counts as well, so that not one pod after the other is tried.
            moved += 1;
            let constraint = &constraints.all[number];
            let (from_domain, to_domain) = (domains.numbers[wanted.from], domains.numbers[wanted.to]);
            if pass.evict(pod, reason(index, constraint, from_domain, smallest), "") {
                destinations.moved();
                if let Some(to) = to {
                    for counting in constraints.counting[class].clone() {
                        let topology = index.topology(constraints.all[counting].topology);
                        constraints.all[counting].move_pod(topology.domain(at), topology.domain(to));
                    }
                } else {
                    constraints.all[number].move_pod(Some(from_domain), Some(to_domain));
                }
            }
        }
        domains.sizes.moved(wanted, moved);
    }
    if pass.wants_verdicts() {
        leave_others(pass, index, &constraints.all[number], &domains);
    }
}

/// The domains of a constraint, and where their pods may go.
fn domains<'i, 'a>(
    pass: &Pass<'_>,
    index: &'i Index<'a>,
    constraints: &Constraints<'_>,
    number: usize,
    has_node_fit: bool,
) -> (Domains, Destinations<'i, 'a>) {
    let constraint = &constraints.all[number];
    let known = constraint.domains.iter().enumerate().filter_map(|(domain, size)| Some((*size.as_ref()?, domain)));
    let mut known: Vec<(i64, usize)> = known.collect();
    known.sort_unstable();
    let sizes = Sizes::new(known.iter().map(|(size, _)| *size).collect(), constraint.spec.skew_max);
    let numbers: Vec<usize> = known.into_iter().map(|(_, domain)| domain).collect();
    let topology = index.topology(constraint.topology);
    let is_below = |at: &usize| constraint.size(topology.domain(*at)).is_some_and(|size| sizes.is_below_average(size));
    let mut destinations = Destinations::new(index, (0..index.nodes.len()).filter(is_below).collect(), has_node_fit);

    let mut place = vec![None; constraint.domains.len()];
    for (position, domain) in numbers.iter().enumerate() {
        let is_large = constraint.size(Some(*domain)).is_some_and(|size| sizes.is_above_average(size));
        place[*domain] = is_large.then_some(position);
    }
    let mut candidates = vec![Vec::new(); numbers.len()];
    for (pod, class, at, domain) in constraint.pods(index) {
        if let Some(position) = domain.and_then(|domain| place[domain])
            && !pass.is_evicted(pod)
        {
            candidates[position].push(Candidate { pod, class, at });
        }
    }
    for candidates in &mut candidates {
        order(index, constraints, number, candidates, &mut destinations);
    }
    let is_large = place.iter().map(Option::is_some).collect();
    (Domains { numbers, sizes, candidates, is_large }, destinations)
}

/// Orders the pods of a domain, what goes first at the end: pods that fit elsewhere, those that do not choose nodes, those of high priority, those of nodes
/// where other constraints count the most; of equals the one whose name comes first.
///
/// QUIRK: the pods of the highest priority go first (`the_pod_of_the_highest_priority_goes_first`).
fn order(
    index: &Index<'_>,
    constraints: &Constraints<'_>,
    number: usize,
    candidates: &mut [Candidate],
    destinations: &mut Destinations<'_, '_>,
) {
    candidates.sort_by_key(|candidate| index.cluster.pod(candidate.pod).map(|pod| &pod.key));
    let mut seen = BTreeMap::<(usize, usize), i64>::new();
    // The place of a pod in the domains of other constraints: these have as many if those before it have gone.
    let mut level = |candidate: &Candidate| -> i64 {
        let others = constraints.counting[candidate.class].iter().filter(|other| **other != number);
        let of_domain = |other: &usize| {
            let constraint = &constraints.all[*other];
            let domain = index.topology(constraint.topology).domain(candidate.at)?;
            let before = seen.entry((*other, domain)).or_default();
            *before += 1;
            Some(constraint.size(Some(domain))? - *before)
        };
        others.filter_map(of_domain).sum()
    };
    let mut keyed: Vec<_> = Vec::with_capacity(candidates.len());
    for candidate in candidates.iter() {
        let key = index.cluster.pod(candidate.pod).map(|pod| {
            let fits = destinations.fit(candidate.pod, candidate.class).is_ok();
            (fits, !chooses_nodes(pod), pod.priority(), level(candidate))
        });
        keyed.push((key, *candidate));
    }
    keyed.reverse();
    keyed.sort_by_key(|(key, _)| *key);
    for (place, (_, candidate)) in candidates.iter_mut().zip(keyed) {
        *place = candidate;
    }
}

/// Whether a pod has a node selector or node affinity.
fn chooses_nodes(pod: &Pod) -> bool {
    let template = &pod.template;
    template.has_node_selector || template.requires_affinity || !template.placement.preferred.is_empty()
}

fn reason(index: &Index<'_>, constraint: &Constraint<'_>, domain: usize, smallest: i64) -> Reason {
    let (key, skew_max) = (&constraint.spec.topology_key, constraint.spec.skew_max);
    let value = index.topology(constraint.topology).values.get(domain).copied().unwrap_or_default();
    let size = constraint.size(Some(domain)).unwrap_or(0);
    let text = format!("{key} {value} has {size} pods, the smallest domain {smallest}, which may differ by {skew_max}");
    let reason = ReasonCode::TopologySpreadViolated.reason(text).with("topologyKey", key).with("domain", value);
    reason.with("pods", size).with("smallest", smallest).with("maxSkew", skew_max)
}

/// Leaves the pods that were not asked to go.
fn leave_others(pass: &mut Pass<'_>, index: &Index<'_>, constraint: &Constraint<'_>, domains: &Domains) {
    let average: Arc<str> = format!("{:.1}", domains.sizes.average()).into();
    let refusal = Refusal::new(ReasonCode::DomainNotTooLarge)
        .with("topologyKey", &constraint.spec.topology_key)
        .with("average", average);
    for candidate in domains.candidates.iter().flatten() {
        pass.leave(candidate.pod, refusal.clone());
    }
    for (id, _, _, domain) in constraint.pods(index) {
        if !domain.is_some_and(|domain| domains.is_large[domain]) {
            pass.leave(id, refusal.clone());
        }
    }
}
