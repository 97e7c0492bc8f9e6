//! Reservations over the resources of running pods (3C.8).

use std::{collections::BTreeSet, sync::Arc};

use koord_core::uid::Uid;
use koord_scheduler_allocation::{
    ReservationInfo, ResourceAmounts, UnreservedResources, exceeded, insufficient_by_node,
};
use koord_scheduler_framework::{Reason, ReasonCode};

use super::reservation_score;

/// A running pod of the node whose resources may be reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub uid: Uid,
    pub requests: ResourceAmounts,
}

/// How running pods are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreAllocation {
    /// The reservation is made over running pods or not at all.
    pub is_required: bool,
    /// Over as many pods as it takes, instead of one.
    pub many: bool,
    /// The order of candidates is given; otherwise those that fill the reservation best come first.
    pub is_ordered: bool,
    /// No pod is taken where the node has enough without.
    pub prefers_none: bool,
}

/// The pods whose resources are reserved on a node with these unreserved resources; none where it has enough without. Otherwise the reasons.
pub fn pre_allocate(
    reservation: &ReservationInfo,
    unreserved: &UnreservedResources,
    candidates: &[Candidate],
    how: PreAllocation,
) -> Result<Vec<Uid>, Vec<Reason>> {
    let lacking = |freed: &ResourceAmounts, pods: i64| lacking(reservation, unreserved, freed, pods);
    let alone = lacking(&ResourceAmounts::default(), 0);
    if !how.is_required && how.prefers_none && alone.is_empty() {
        return Ok(Vec::new());
    }
    // A pod that requests none of the resources that count has nothing that could be taken over.
    let frees = |one: &&Candidate| one.requests.iter().any(|(name, _)| reservation.counts(name));
    let mut sorted: Vec<&Candidate> = candidates.iter().filter(frees).collect();
    if !how.is_ordered {
        sorted.sort_by_cached_key(|one| (-reservation_score(&one.requests, reservation), one.uid.clone()));
    } else if !how.many {
        // The one that fills it best is taken; their order decides among equals.
        sorted.sort_by_key(|one| -reservation_score(&one.requests, reservation));
    }
    let (mut chosen, mut freed) = (Vec::new(), ResourceAmounts::default());
    let (mut by_node, mut by_reservation) = (BTreeSet::new(), Vec::new());
    for candidate in sorted {
        let mut sum = if how.many { freed.clone() } else { ResourceAmounts::default() };
        sum.add(&candidate.requests);
        let exceeded = exceeded(&sum, reservation, false);
        if !exceeded.is_empty() {
            by_reservation.extend(exceeded);
            if !how.many {
                by_node.extend(lacking(&sum, 1));
            }
            continue;
        }
        if !how.many {
            chosen.clear();
        }
        chosen.push(candidate.uid.clone());
        let lacks = lacking(&sum, i64::try_from(chosen.len()).unwrap_or(i64::MAX));
        if lacks.is_empty() {
            return Ok(chosen);
        }
        by_node.extend(lacks);
        freed = sum;
    }
    match how.is_required {
        true if by_node.is_empty() && by_reservation.is_empty() => {
            const WORDS: &str = "node(s) no pod(s) to meet the pre-allocation requirements";
            Err(ReasonCode::PreAllocationImpossible.reason(WORDS).into())
        }
        true => Err(by_node.into_iter().chain(by_reservation).collect()),
        false if alone.is_empty() => Ok(Vec::new()),
        // What candidates free is not lacking.
        false if !by_node.is_empty() => Err(by_node.into_iter().collect()),
        false => Err(alone.into_iter().collect()),
    }
}

/// What the node lacks for the reservation, when so many pods with these requests are a part of it.
fn lacking(
    reservation: &ReservationInfo,
    unreserved: &UnreservedResources,
    freed: &ResourceAmounts,
    pods: i64,
) -> BTreeSet<Reason> {
    let lacks = |(name, amount): &(&Arc<str>, i64)| *amount > unreserved.free.get(name).saturating_add(freed.get(name));
    let too_many = (unreserved.pods.saturating_add(pods) < 1).then_some("pods");
    let named = reservation.allocatable.positive().filter(lacks).map(|(name, _)| &**name);
    too_many.into_iter().chain(named).map(insufficient_by_node).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{amounts, reservation};
    use serde_json::json;

    use super::*;

    const REQUIRED: PreAllocation =
        PreAllocation { is_required: true, many: false, is_ordered: false, prefers_none: false };

    /// The pods that a reservation of 4 cores takes on a node with so many left, of pods with so many cores.
    fn taken(free: i64, pods: &[i64], how: PreAllocation) -> Result<String, String> {
        let info = reservation(
            json!({"spec": {"allocatePolicy": "Restricted"}, "status": {"allocatable": {"cpu": "4", "memory": "0"}}}),
        );
        let unreserved = UnreservedResources { free: amounts(&[("cpu", free)]), pods: 1 };
        let candidates: Vec<Candidate> = ["a", "b", "c"]
            .iter()
            .zip(pods)
            .map(|(name, cpu)| Candidate { uid: Uid::from(*name), requests: amounts(&[("cpu", *cpu)]) })
            .collect();
        let taken = pre_allocate(&info, &unreserved, &candidates, how);
        let names = |taken: Vec<Uid>| taken.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        taken.map(names).map_err(|reasons| Reason::joined(&reasons))
    }

    #[test]
    fn one_pod_must_free_enough_and_be_no_larger_than_the_reservation() {
        assert_eq!(taken(0, &[4000], REQUIRED), Ok("a".to_owned()), "prealloc-takes-running");
        assert_eq!(taken(1000, &[1000, 3000, 3500], REQUIRED), Ok("c".to_owned()), "the one that fills it best");
        let lacks = "Insufficient cpu by node".to_owned();
        assert_eq!(taken(0, &[2000, 2000], REQUIRED), Err(lacks), "prealloc-single-not-enough");
        let larger = "Reservation(s) Insufficient cpu".to_owned();
        let both = taken(-9000, &[6000, 7000], REQUIRED);
        assert_eq!(both, Err(format!("Insufficient cpu by node, {larger}, {larger}")), "each that is too large");
        assert_eq!(taken(2000, &[6000], REQUIRED), Err(larger), "prealloc-too-big-pod");
        let no_pod = "node(s) no pod(s) to meet the pre-allocation requirements".to_owned();
        assert_eq!(taken(9000, &[], REQUIRED), Err(no_pod));
    }

    #[test]
    fn several_pods_are_taken_until_there_is_enough() {
        let many = PreAllocation { many: true, ..REQUIRED };
        assert_eq!(taken(0, &[2000, 2000], many), Ok("a b".to_owned()), "prealloc-multiple");
        assert_eq!(taken(0, &[2000, 3000, 1000], many), Ok("b c".to_owned()), "one that would be too much is left out");
        let best = PreAllocation { is_ordered: true, ..REQUIRED };
        assert_eq!(taken(2000, &[2000, 3000], best), Ok("b".to_owned()), "the order decides among equals only");
        let ordered = PreAllocation { is_ordered: true, ..many };
        assert_eq!(taken(1000, &[1000, 3000, 2000], ordered), Ok("a b".to_owned()));
    }

    #[test]
    fn a_pod_that_requests_none_of_what_is_reserved_is_not_taken() {
        let info = reservation(
            json!({"spec": {"allocatePolicy": "Restricted"}, "status": {"allocatable": {"cpu": "4", "memory": "0"}}}),
        );
        let unreserved = UnreservedResources { free: amounts(&[("cpu", 8000)]), pods: 1 };
        let taken = |requests: &[(&str, i64)], is_required: bool| {
            let candidate = Candidate { uid: Uid::from("a"), requests: amounts(requests) };
            let how = PreAllocation { is_required, ..REQUIRED };
            let taken = pre_allocate(&info, &unreserved, &[candidate], how);
            taken.map(|taken| taken.len()).map_err(|reasons| Reason::joined(&reasons))
        };
        let no_pod = "node(s) no pod(s) to meet the pre-allocation requirements".to_owned();
        let nothing: &[(&str, i64)] = &[];
        for requests in [nothing, &[("x/y", 1)]] {
            assert_eq!((taken(requests, true), taken(requests, false)), (Err(no_pod.clone()), Ok(0)));
        }
        assert_eq!(taken(&[("cpu", 0)], true), Ok(1), "of one that counts it requests nothing");
    }

    #[test]
    fn a_reservation_that_may_do_without_pods_does_where_it_can() {
        let optional = PreAllocation { is_required: false, ..REQUIRED };
        assert_eq!(taken(4000, &[4000], optional), Ok("a".to_owned()));
        assert_eq!(taken(4000, &[4000], PreAllocation { prefers_none: true, ..optional }), Ok(String::new()));
        assert_eq!(taken(4000, &[6000], optional), Ok(String::new()));
        assert_eq!(taken(3000, &[6000], optional), Err("Insufficient cpu by node".to_owned()));
    }

    #[test]
    fn what_a_reservation_lacks_with_pods_is_said_before_what_the_node_alone_lacks() {
        let info = reservation(
            json!({"spec": {"allocatePolicy": "Restricted"}, "status": {"allocatable": {"cpu": "4", "memory": "8"}}}),
        );
        let unreserved = UnreservedResources { free: amounts(&[("cpu", 0), ("memory", 0)]), pods: 1 };
        let lacking = |requests: &[(&str, i64)]| {
            let candidate = Candidate { uid: Uid::from("a"), requests: amounts(requests) };
            let taken = pre_allocate(&info, &unreserved, &[candidate], PreAllocation::default());
            taken.map(|taken| taken.len()).map_err(|reasons| Reason::joined(&reasons))
        };
        assert_eq!(lacking(&[("cpu", 4000)]), Err("Insufficient memory by node".to_owned()));
        let alone = "Insufficient cpu by node, Insufficient memory by node".to_owned();
        assert_eq!(lacking(&[("cpu", 6000), ("memory", 8)]), Err(alone), "it is too large, and would free enough");
    }
}
