use proptest::prelude::*;

use super::*;
use crate::numa::ledger::{Ledger, NumaAllocation};

/// Sockets, NUMA nodes per socket, cores per NUMA node, CPUs per core; numbered consecutively.
type Shape = [u32; 4];

fn topology([sockets, nodes, cores, cpus]: Shape) -> CpuTopology {
    let (per_node, per_socket) = (cores * cpus, nodes * cores * cpus);
    (0..sockets * per_socket)
        .map(|id| Cpu { id, core: id / cpus, node: id / per_node, socket: id / per_socket })
        .collect()
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn ledger(cpus: &str, exclusive: Exclusive) -> Ledger {
    let mut ledger = Ledger::default();
    ledger.add(&NumaAllocation { cpus: set(cpus), exclusive, ..NumaAllocation::default() });
    ledger
}

fn taken(
    shape: Shape,
    ledger: &Ledger,
    (needed, policies): (usize, CpuPolicies),
    (fill, refs_max): (Fill, u32),
) -> Option<String> {
    let topology = topology(shape);
    let available = topology.cpus().difference(&ledger.exhausted(refs_max));
    let offer = Offer { topology: &topology, ledger, refs_max, fill };
    take(offer, &available, needed, policies).map(|cpus| cpus.to_string())
}

const FULL: CpuPolicies = CpuPolicies { bind: Bind::FullPcpus, exclusive: Exclusive::None };
const SPREAD: CpuPolicies = CpuPolicies { bind: Bind::SpreadByPcpus, exclusive: Exclusive::None };

fn check(policies: CpuPolicies, rows: &[(Shape, &str, usize, &str, &str)]) {
    for (shape, allocated, needed, most, least) in rows {
        let ledger = ledger(allocated, Exclusive::None);
        for (fill, expected) in [(Fill::MostAllocated, most), (Fill::LeastAllocated, least)] {
            if !expected.is_empty() {
                let taken = taken(*shape, &ledger, (*needed, policies), (fill, 1));
                assert_eq!(taken.unwrap(), set(expected).to_string(), "{shape:?} {allocated} {needed} {fill:?}");
            }
        }
    }
}

#[test]
fn whole_cores_are_taken_of_one_numa_node_or_socket_where_possible() {
    check(
        FULL,
        &[
            ([1, 1, 4, 2], "", 2, "0-1", "0-1"),
            ([1, 1, 4, 2], "0-1", 2, "2-3", "2-3"),
            ([2, 1, 4, 2], "", 8, "0-7", "0-7"),
            ([2, 1, 4, 2], "", 12, "0-11", "0-11"),
            ([2, 1, 4, 2], "0-1", 8, "8-15", "8-15"),
            ([2, 2, 4, 2], "0-5,16-23", 6, "24-29", "8-13"),
            ([2, 2, 4, 2], "0-5,16-23", 12, "6-15,24-25", "6-15,24-25"),
            ([2, 2, 4, 2], "0-3,8-11", 4, "4-7", "16-19"),
            ([2, 2, 2, 2], "0,2,4,8,12", 4, "10,11,14,15", "10,11,14,15"),
            ([2, 2, 2, 2], "0,2,4,8,10,12", 6, "5,6,7,13,14,15", "1,3,6,7,14,15"),
            ([2, 2, 2, 2], "0,2,4,8,9,10,12", 6, "6,7,11,13,14,15", ""),
            ([2, 2, 4, 2], "0,2,4,8,9,10,12", 6, "", "16-21"),
        ],
    );
}

#[test]
fn spread_cpus_are_taken_one_per_core_where_possible() {
    check(
        SPREAD,
        &[
            ([1, 1, 4, 2], "", 4, "0,2,4,6", "0,2,4,6"),
            ([2, 1, 4, 2], "0,2", 4, "1,3,4,6", "8,10,12,14"),
            ([2, 1, 4, 2], "0-3", 4, "8,10,12,14", "8,10,12,14"),
            ([2, 1, 4, 2], "0,2", 6, "1,3-7", "8-12,14"),
        ],
    );
    let topology = topology([2, 2, 4, 2]);
    for fill in [Fill::MostAllocated, Fill::LeastAllocated] {
        let offer = Offer { topology: &topology, ledger: &Ledger::default(), refs_max: 1, fill };
        let order: Vec<u32> =
            Accumulator::new(offer, topology.cpus(), 32, SPREAD).any(true).iter().map(|cpu| cpu.id).collect();
        assert_eq!(order, (0..32).step_by(2).chain((1..32).step_by(2)).collect::<Vec<_>>());
    }
}

#[test]
fn pods_of_one_exclusive_policy_keep_away_from_each_other() {
    use Exclusive::{None, NumaNode, Pcpu};
    let (spread, full) = (Bind::SpreadByPcpus, Bind::FullPcpus);
    for (shape, allocated, held_by, bind, exclusive, needed, expected) in [
        ([2, 1, 4, 2], "0,2", Pcpu, spread, Pcpu, 4, "8,10,12,14"),
        ([2, 1, 4, 2], "", None, spread, Pcpu, 10, "0-4,6,8,10,12,14"),
        ([2, 1, 8, 2], "0,2", Pcpu, spread, Pcpu, 4, "4,6,8,10"),
        ([2, 1, 8, 2], "0,2", Pcpu, spread, None, 4, "1,3,4,6"),
        ([2, 1, 4, 2], "0,2", NumaNode, spread, NumaNode, 4, "8,10,12,14"),
        ([2, 1, 4, 2], "0,2", NumaNode, spread, None, 4, "1,3,4,6"),
        ([2, 1, 4, 2], "0,2", NumaNode, full, NumaNode, 4, "8-11"),
        ([2, 1, 4, 2], "0,2", NumaNode, full, None, 4, "4-7"),
        // Where nothing else is left they do not.
        ([1, 1, 4, 2], "0,2,4,6", Pcpu, spread, Pcpu, 2, "1,3"),
    ] {
        let policies = CpuPolicies { bind, exclusive };
        let taken = taken(shape, &ledger(allocated, held_by), (needed, policies), (Fill::MostAllocated, 1));
        assert_eq!(
            taken.unwrap(),
            set(expected).to_string(),
            "{allocated} {held_by:?} {bind:?} {exclusive:?} {needed}"
        );
    }
}

#[test]
fn shareable_cpus_are_first_taken_where_no_pod_is() {
    let successive = |shape: Shape, wishes: &[(usize, CpuPolicies)]| {
        let mut ledger = Ledger::default();
        let mut taken_next = |policies: &(usize, CpuPolicies)| {
            let cpus = taken(shape, &ledger, *policies, (Fill::MostAllocated, 2))?;
            ledger.add(&NumaAllocation { cpus: set(&cpus), ..NumaAllocation::default() });
            Some(cpus)
        };
        wishes.iter().map(|policies| taken_next(policies).unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(successive([1, 1, 4, 2], &[(4, FULL), (5, FULL), (4, FULL)]), ["0-3", "0,4-7", "2-5"]);
    let evens: CpuSet = (0..32).step_by(2).collect();
    let odds: CpuSet = (1..32).step_by(2).collect();
    let expected = [&evens.to_string(), "0-15", &odds.to_string(), "16-31", ""];
    let wishes = [(16, SPREAD), (16, FULL), (16, SPREAD), (16, FULL), (1, SPREAD)];
    assert_eq!(successive([1, 1, 16, 2], &wishes), expected);
}

#[test]
fn preferred_cpus_are_taken_first() {
    let topology = topology([1, 1, 4, 2]);
    let offer = Offer { topology: &topology, ledger: &Ledger::default(), refs_max: 1, fill: Fill::LeastAllocated };
    let taken = |preferred: &str, needed| {
        take_preferred(offer, &set("1-7"), &set(preferred), needed, FULL).map(|cpus| cpus.to_string())
    };
    assert_eq!(taken("0,6-7", 2).as_deref(), Some("6-7"));
    assert_eq!(taken("0,6-7", 4).as_deref(), Some("2-3,6-7"));
    assert_eq!(taken("", 2).as_deref(), Some("2-3"));
    assert_eq!((taken("6", 8), taken("6", 0).as_deref()), (None, Some("")));
}

#[test]
fn of_several_sockets_that_are_too_large_no_core_is_taken_beyond_what_is_needed() {
    // One socket as a whole, one core of the next, and one CPU, but no core of the third.
    check(FULL, &[([3, 1, 4, 2], "", 11, "0-10", "0-10")]);
}

fn shapes() -> impl Strategy<Value = Shape> {
    (1..3_u32, 1..3_u32, 1..5_u32, 1..3_u32).prop_map(|(sockets, nodes, cores, cpus)| [sockets, nodes, cores, cpus])
}

fn wishes() -> impl Strategy<Value = CpuPolicies> {
    let bind = prop_oneof![Just(Bind::FullPcpus), Just(Bind::SpreadByPcpus)];
    let exclusive = prop_oneof![Just(Exclusive::None), Just(Exclusive::Pcpu), Just(Exclusive::NumaNode)];
    (bind, exclusive).prop_map(|(bind, exclusive)| CpuPolicies { bind, exclusive })
}

proptest! {
    #[test]
    fn exactly_what_is_needed_is_taken_of_what_is_available(
        shape in shapes(),
        policies in wishes(),
        held_by in wishes(),
        allocated in proptest::collection::btree_set(0..32_u32, 0..24),
        needed in 0..33_usize,
        is_most in any::<bool>(),
    ) {
        let topology = topology(shape);
        let allocated: CpuSet = allocated.into_iter().collect();
        let ledger = ledger(&allocated.to_string(), held_by.exclusive);
        let available = topology.cpus().difference(&allocated);
        let fill = if is_most { Fill::MostAllocated } else { Fill::LeastAllocated };
        let offer = Offer { topology: &topology, ledger: &ledger, refs_max: 1, fill };
        match take(offer, &available, needed, policies) {
            Some(cpus) => {
                prop_assert_eq!(cpus.len(), needed);
                prop_assert!(cpus.is_subset(&available), "{} of {}", cpus, available);
            }
            None => prop_assert!(needed > available.len()),
        }
    }
}
