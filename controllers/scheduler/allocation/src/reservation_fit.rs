//! Whether a node takes a pod with the reservations on it that the pod matches (3C.7).

use std::collections::BTreeSet;

use koord_scheduler_framework::{Reason, ReasonCode};

use super::{AllocatePolicy, ReservationInfo, ResourceAmounts};

/// What a node has left beside everything that is kept on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreservedResources {
    /// What is left of each resource that the node has; less than nothing where it is overcommitted.
    pub free: ResourceAmounts,
    /// How many further pods it takes.
    pub pods: i64,
}

/// Why a node does not take a pod: what it lacks, sorted, and what each reservation lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    pub reasons: Vec<Reason>,
}

/// What a pod needs of reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitOptions {
    /// The pod does not use the node without a reservation.
    pub requires_reservation: bool,
    /// The pod has a reservation affinity, and uses a reservation of which it requests nothing, too.
    pub has_affinity: bool,
    /// The pod names a reservation: reasons have numbers.
    pub names_reservation: bool,
    /// Filters of other plugins have judged a node with one reservation that the pod matches.
    pub trusts_node: bool,
}

/// The reservations with which a node takes a pod; empty where it takes it without any.
///
/// `is_ignored` names resources that reservations do not keep.
pub fn fits<'r>(
    requests: &ResourceAmounts,
    unreserved: &UnreservedResources,
    matched: &[&'r ReservationInfo],
    needs: FitOptions,
    is_ignored: impl Fn(&str) -> bool,
) -> Result<Vec<&'r ReservationInfo>, Unfit> {
    let lacking = |more: &ResourceAmounts| lacking(requests, unreserved, more, &is_ignored);
    let (mut taken, mut by_node, mut by_reservation) = (Vec::new(), BTreeSet::new(), Vec::new());
    for info in matched {
        let shares = requests.iter().any(|(name, _)| info.counts(name));
        if !shares && !needs.has_affinity {
            continue;
        }
        let is_trusted = needs.trusts_node && matched.len() == 1;
        let lacks = if is_trusted { BTreeSet::new() } else { lacking(&info.available()) };
        let is_restricted = info.policy == AllocatePolicy::Restricted;
        let exceeded = if is_restricted { exceeded(requests, info, needs.names_reservation) } else { Vec::new() };
        if lacks.is_empty() && exceeded.is_empty() {
            taken.push(*info);
        }
        by_node.extend(lacks);
        by_reservation.extend(exceeded);
    }
    if !taken.is_empty() {
        return Ok(taken);
    }
    let refused = |reasons: Vec<Reason>| Err(Unfit { reasons });
    if needs.requires_reservation {
        let reasons: Vec<Reason> = by_node.into_iter().chain(by_reservation).collect();
        return refused(if reasons.is_empty() {
            ReasonCode::ReservationFull.reason("node(s) no reservation(s) to meet the requirements").into()
        } else {
            reasons
        });
    }
    if !by_node.is_empty() {
        return refused(by_node.into_iter().collect());
    }
    match lacking(&ResourceAmounts::default()) {
        lacks if lacks.is_empty() => Ok(Vec::new()),
        lacks => refused(lacks.into_iter().collect()),
    }
}

/// What a node has too little of, if a reservation gives the pod this much more.
fn lacking(
    requests: &ResourceAmounts,
    unreserved: &UnreservedResources,
    more: &ResourceAmounts,
    is_ignored: impl Fn(&str) -> bool,
) -> BTreeSet<Reason> {
    let pods = (unreserved.pods < 1).then_some("pods");
    let lacks = |(name, request): &(&std::sync::Arc<str>, i64)| {
        *request > unreserved.free.get(name).saturating_add(more.get(name))
    };
    let named = requests.positive().filter(|(name, _)| !is_ignored(name)).filter(lacks).map(|(name, _)| &**name);
    pods.into_iter().chain(named).map(insufficient_by_node).collect()
}

/// The node has too little of a resource beside what is reserved on it.
pub fn insufficient_by_node(name: &str) -> Reason {
    ReasonCode::InsufficientResources.reason(format!("Insufficient {name} by node")).with("resource", name)
}

/// Whether a reservation has enough for a pod, where owners take nothing else.
pub fn fits_in(requests: &ResourceAmounts, info: &ReservationInfo) -> bool {
    info.policy != AllocatePolicy::Restricted || exceeded(requests, info, false).is_empty()
}

/// What a reservation has too little of, where owners take nothing else.
pub fn exceeded(requests: &ResourceAmounts, info: &ReservationInfo, in_numbers: bool) -> Vec<Reason> {
    let assigned = i64::try_from(info.assigned_count()).unwrap_or(i64::MAX);
    let too_many = info.allocatable.has("pods") && assigned.saturating_add(1) > info.allocatable.get("pods");
    let lacks = requests.positive().filter(|(name, _)| info.counts(name)).filter_map(|(name, request)| {
        let used = info.allocated().get(name).max(0);
        let capacity = info.allocatable.get(name).saturating_sub(info.withheld.get(name));
        let numbers = if in_numbers {
            format!(", requested: {request}, used: {used}, capacity: {capacity}")
        } else {
            String::new()
        };
        let exceeded = || ReasonCode::ReservationFull.reason(format!("Reservation(s) Insufficient {name}{numbers}"));
        let numbered =
            |exceeded: Reason| exceeded.with("requested", request).with("used", used).with("capacity", capacity);
        (request > capacity.saturating_sub(used)).then(|| numbered(exceeded().with("resource", name)))
    });
    let too_many = too_many.then(|| {
        let capacity = info.allocatable.get("pods");
        let numbers =
            if in_numbers { format!(", requested: 1, used: {assigned}, capacity: {capacity}") } else { String::new() };
        let words = format!("Reservation(s) Too many pods{numbers}");
        ReasonCode::ReservationFull.reason(words).with("resource", "pods")
    });
    too_many.into_iter().chain(lacks).collect()
}

#[cfg(test)]
mod tests {
    use koord_core::uid::Uid;
    use proptest::prelude::*;
    use serde_json::json;

    use super::{
        super::testing::{amounts, reservation},
        *,
    };

    fn policy(policy: &str) -> ReservationInfo {
        reservation(json!({"spec": {"allocatePolicy": policy, "allocateOnce": false}}))
    }

    /// Whether a pod of so many cores fits, and with how many reservations.
    fn fit(
        milli_cpu: i64,
        free: i64,
        matched: &[&ReservationInfo],
        (one, names_reservation): (bool, bool),
    ) -> Result<usize, String> {
        let unreserved = UnreservedResources { free: amounts(&[("cpu", free), ("memory", 100)]), pods: 10 };
        let requests = amounts(&[("cpu", milli_cpu), ("memory", 1)]);
        let needs =
            FitOptions { requires_reservation: one, has_affinity: one, names_reservation, ..FitOptions::default() };
        let taken = fits(&requests, &unreserved, matched, needs, |_| false);
        taken.map(|taken| taken.len()).map_err(|unfit| Reason::joined(&unfit.reasons))
    }

    const NO: (bool, bool) = (false, false);

    #[test]
    fn an_aligned_owner_takes_the_rest_from_the_node() {
        // default-overflow-to-node: 6 of 8 cores, of which 4 are kept.
        assert_eq!(fit(6000, 4000, &[&policy("Aligned")], NO), Ok(1));
        assert_eq!(fit(9000, 4000, &[&policy("Aligned")], NO), Err("Insufficient cpu by node".to_owned()));
    }

    #[test]
    fn a_restricted_owner_takes_the_reservation_or_the_node_alone() {
        let restricted = policy("Restricted");
        assert_eq!(fit(4000, 0, &[&restricted], NO), Ok(1));
        // restricted-too-big-uses-node, restricted-too-big-no-node-room
        assert_eq!(fit(6000, 12000, &[&restricted], NO), Ok(0));
        assert_eq!(fit(6000, 4000, &[&restricted], NO), Err("Insufficient cpu by node".to_owned()));
        // restricted-too-big-name
        let said = "Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000";
        assert_eq!(fit(6000, 12000, &[&restricted], (true, true)), Err(said.to_owned()));
        assert_eq!(fit(6000, 12000, &[&restricted], (true, false)), Err("Reservation(s) Insufficient cpu".to_owned()));
    }

    #[test]
    fn what_owners_use_and_what_is_withheld_is_not_there() {
        // restricted-shared
        let mut shared = policy("Restricted");
        shared.assign(&Uid::from("p"), &amounts(&[("cpu", 2000)]));
        shared.assign(&Uid::from("q"), &amounts(&[("cpu", 1000)]));
        let said = "Reservation(s) Insufficient cpu, requested: 2000, used: 3000, capacity: 4000";
        assert_eq!(fit(2000, 4000, &[&shared], (true, true)), Err(said.to_owned()));
        shared.assign(&Uid::from("s"), &amounts(&[("cpu", 2000)]));
        assert_eq!(fit(0, 4000, &[&shared], (true, true)), Ok(1), "more is used than there is, and none is requested");
        // withheld
        let annotation = json!({"node.koordinator.sh/reservation": r#"{"resources":{"cpu":"2"}}"#});
        let withheld =
            reservation(json!({"metadata": {"annotations": annotation}, "spec": {"allocatePolicy": "Restricted"}}));
        let said = "Reservation(s) Insufficient cpu, requested: 3000, used: 0, capacity: 2000";
        let text = r#"{"resources":{"cpu":"-9223372036854775807"}}"#;
        let odd = json!({"metadata": {"annotations": {"node.koordinator.sh/reservation": text}}, "spec": {"allocatePolicy": "Restricted"}});
        assert_eq!(fit(3000, 4000, &[&reservation(odd)], (true, true)), Ok(1), "an amount that cannot be is no panic");
        assert_eq!(fit(3000, 4000, &[&withheld], (true, true)), Err(said.to_owned()));
        assert_eq!(fit(2000, 4000, &[&withheld], (true, true)), Ok(1));
    }

    #[test]
    fn a_node_may_be_trusted_that_has_one_reservation_for_the_pod() {
        let annotation = json!({"node.koordinator.sh/reservation": r#"{"resources":{"cpu":"2"}}"#});
        let withheld = reservation(json!({"metadata": {"annotations": annotation}}));
        let unreserved = UnreservedResources { free: amounts(&[("cpu", 0)]), pods: 1 };
        let taken = |trusts_node, matched: &[&ReservationInfo]| {
            let needs = FitOptions { trusts_node, ..FitOptions::default() };
            fits(&amounts(&[("cpu", 3000)]), &unreserved, matched, needs, |_| false)
                .map(|taken| taken.len())
                .map_err(|unfit| Reason::joined(&unfit.reasons))
        };
        let short = Err("Insufficient cpu by node".to_owned());
        assert_eq!(taken(false, &[&withheld]), short);
        assert_eq!(taken(true, &[&withheld]), Ok(1));
        assert_eq!(taken(true, &[&withheld, &withheld]), short);
    }

    #[test]
    fn a_resource_that_is_not_reserved_is_taken_from_the_node() {
        // restricted-other-resource
        let restricted = policy("Restricted");
        let unreserved = UnreservedResources { free: amounts(&[("cpu", 4000), ("x/y", 4)]), pods: 1 };
        let requests = |foo| amounts(&[("cpu", 2000), ("x/y", foo)]);
        let fits = |foo, ignored: bool| {
            fits(&requests(foo), &unreserved, &[&restricted], FitOptions::default(), |name| ignored && name == "x/y")
        };
        assert_eq!(fits(2, false).unwrap().len(), 1);
        assert_eq!(Reason::joined(&fits(5, false).unwrap_err().reasons), "Insufficient x/y by node");
        assert_eq!(fits(5, true).unwrap().len(), 1);
    }

    #[test]
    fn pods_count_on_the_node_and_where_they_are_reserved() {
        let few =
            reservation(json!({"spec": {"allocatePolicy": "Restricted"}, "status": {"allocatable": {"pods": "0"}}}));
        assert_eq!(fit(1000, 0, &[&few], (true, false)), Err("Reservation(s) Too many pods".to_owned()));
        let unreserved = UnreservedResources { free: amounts(&[("cpu", 9000)]), pods: 0 };
        let unfit = fits(&ResourceAmounts::default(), &unreserved, &[], FitOptions::default(), |_| false).unwrap_err();
        assert_eq!(Reason::joined(&unfit.reasons), "Insufficient pods by node");
    }

    #[test]
    fn a_reservation_of_other_resources_counts_only_for_a_pod_that_needs_one() {
        let other = reservation(json!({"status": {"allocatable": {"cpu": "0", "memory": "8"}}}));
        let unreserved = UnreservedResources { free: amounts(&[("x/y", 4)]), pods: 1 };
        let fits = |one| {
            let needs = FitOptions { requires_reservation: one, has_affinity: one, ..FitOptions::default() };
            fits(&amounts(&[("x/y", 1)]), &unreserved, &[&other], needs, |_| false).unwrap().len()
        };
        assert_eq!((fits(false), fits(true)), (0, 1));
        assert_eq!(
            fit(1000, 9000, &[], (true, false)),
            Err("node(s) no reservation(s) to meet the requirements".to_owned())
        );
    }

    proptest! {
        /// With every reservation that is taken, the pod's requests are no more than the node has and the reservation adds;
        /// of a Restricted one they are no more than it has left itself.
        #[test]
        fn nothing_is_given_twice(
            request in 1_i64..12_000,
            free in -2_000_i64..12_000,
            used in proptest::collection::vec((0_usize..3, 0_i64..3_000), 0..6),
            needs_one in any::<bool>(),
        ) {
            let mut infos = [policy("Aligned"), policy("Restricted"), policy("Default")];
            for (at, (index, amount)) in used.iter().enumerate() {
                infos[*index].assign(&Uid::from(&*at.to_string()), &amounts(&[("cpu", *amount)]));
            }
            let unreserved = UnreservedResources { free: amounts(&[("cpu", free)]), pods: 1 };
            let matched: Vec<&ReservationInfo> = infos.iter().collect();
            match fits(&amounts(&[("cpu", request)]), &unreserved, &matched, FitOptions { requires_reservation: needs_one, ..FitOptions::default() }, |_| false) {
                Ok(taken) => {
                    prop_assert!(!taken.is_empty() || !needs_one && request <= free);
                    for info in taken {
                        prop_assert!(request <= free + info.available().get("cpu"));
                        let restricted = info.policy == AllocatePolicy::Restricted;
                        prop_assert!(!restricted || request <= info.available().get("cpu"));
                    }
                }
                Err(unfit) => {
                    prop_assert!(!unfit.reasons.is_empty());
                    let by_aligned = free + infos[0].available().get("cpu");
                    prop_assert!(request > by_aligned && (needs_one || request > free || unfit.reasons[0].text.contains("by node")));
                }
            }
        }
    }
}
