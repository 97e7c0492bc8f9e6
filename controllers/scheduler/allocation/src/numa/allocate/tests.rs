use koord_scheduling::{Cpu, CpuTopology};
use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::numa::{
    policy::{Exclusive, Policy},
    score::NumaScorer,
    topology_manager::TopologyHint,
    zone::NumaZone,
};

pub fn vector(cpu: i64, memory: i64) -> ResourceVector {
    let mut vector = ResourceVector::default();
    vector.set(ResourceId::CPU, cpu);
    vector.set(ResourceId::MEMORY, memory);
    vector
}

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn zone(number: u32, total: ResourceVector, cpus: &CpuTopology) -> NumaZone {
    let cpus = cpus.nodes().find(|(node, _)| *node == number).map(|(_, cpus)| cpus.clone()).unwrap();
    NumaZone { number, total, cpus, ..NumaZone::default() }
}

/// NUMA nodes of four cores with two CPUs each, with 1000 units of memory.
fn node(numa_nodes: u32) -> NumaNode {
    let cpus: CpuTopology = (0..8 * numa_nodes).map(|id| Cpu { id, core: id / 2, node: id / 8, socket: 0 }).collect();
    let zone = |number| zone(number, vector(8000, 1000), &cpus);
    let zones = (0..numa_nodes).map(zone).collect();
    NumaNode { zones, known: smallvec![ResourceId::CPU, ResourceId::MEMORY], cpus, ..NumaNode::default() }.settled()
}

/// The CPUs of a pod, and what it has of NUMA nodes: their numbers, cpu and memory.
type Has<'a> = (&'a str, &'a [(u32, i64, i64)]);

fn with(mut node: NumaNode, pods: &[Has<'_>]) -> NumaNode {
    for (cpus, shares) in pods {
        let shares = shares.iter().map(|(node, cpu, memory)| (*node, vector(*cpu, *memory))).collect();
        node.add(&NumaAllocation { cpus: set(cpus), shares, ..NumaAllocation::default() });
    }
    node
}

fn sharing(cpu: i64, memory: i64) -> Order<'static> {
    Order { requests: Cow::Owned(vector(cpu, memory)), cpus: None, fill: Fill::LeastAllocated }
}

fn binding(cpus: usize, bind: Bind, is_required: bool) -> Order<'static> {
    let policies = CpuPolicies { bind, exclusive: Exclusive::None };
    Order { cpus: Some(CpuOrder { needed: cpus, policies, is_required }), ..sharing(milli(cpus), 100) }
}

fn mask(nodes: &[u32]) -> Option<NumaMask> {
    NumaMask::of(nodes.iter().copied())
}

/// The CPUs, and the shares as `node:cpu/memory`; or the reasons.
fn allocated(node: &NumaNode, order: &Order<'_>, affinity: Option<NumaMask>) -> String {
    match Stock::new(node, order, &NumaLimits::default()).allocate(affinity) {
        Ok(NumaAllocation { cpus, shares, .. }) => {
            let share = |(node, share): &(u32, ResourceVector)| {
                format!("{node}:{}/{}", share.get(ResourceId::CPU), share.get(ResourceId::MEMORY))
            };
            format!("{cpus} {}", shares.iter().map(share).collect::<Vec<_>>().join(" ")).trim().to_owned()
        }
        Err(shortage) => {
            let name = |id| if id == ResourceId::CPU { "cpu" } else { "memory" };
            Reason::joined(&shortage.reasons(name))
        }
    }
}

#[test]
fn what_is_requested_is_divided_evenly() {
    let empty = node(2);
    assert_eq!(allocated(&empty, &sharing(12_000, 100), mask(&[0, 1])), "0:6000/50 1:6000/50");
    assert_eq!(allocated(&empty, &sharing(5000, 0), mask(&[0, 1])), "0:2500/0 1:2500/0");
    assert_eq!(allocated(&empty, &sharing(12_000, 100), mask(&[0])), "Insufficient NUMA cpu");
    assert_eq!(
        allocated(&empty, &sharing(17_000, 2001), mask(&[0, 1])),
        "Insufficient NUMA cpu, Insufficient NUMA memory"
    );
    // The fuller one gives what it has, and the other the rest.
    let uneven = with(node(2), &[("", &[(1, 7000, 0)])]);
    assert_eq!(allocated(&uneven, &sharing(6000, 0), mask(&[0, 1])), "0:5000/0 1:1000/0");
    assert_eq!(allocated(&uneven, &sharing(6000, 0), None), "", "it does not matter which");
    assert_eq!(allocated(&NumaNode::default(), &sharing(1, 1), mask(&[0])), "insufficient resources on NUMA Node");
}

#[test]
fn a_resource_that_no_numa_node_reports_is_no_matter_of_numa() {
    let mut cpu_alone = node(1);
    cpu_alone.known = smallvec![ResourceId::CPU];
    cpu_alone.zones[0].total = vector(8000, 0);
    let mut cpu_alone = cpu_alone.settled();
    assert_eq!(allocated(&cpu_alone, &sharing(1000, 500), mask(&[0])), "0:1000/0");
    cpu_alone.known.push(ResourceId::MEMORY);
    assert_eq!(allocated(&cpu_alone, &sharing(1000, 500), mask(&[0])), "Insufficient NUMA memory");
}

#[test]
fn parts_are_ordered_by_position() {
    // NUMA nodes 2 and 3 hold 2 and 8 cores of cpu, 0 and 1 have 8 and 2: by their numbers the list would begin with 2.
    let pods: &[Has<'_>] = &[("", &[(1, 6000, 0), (2, 6000, 0)])];
    let node = with(node(4), pods);
    let order = sharing(10_000, 0);
    let limits = NumaLimits::default();
    let stock = Stock::new(&node, &order, &limits);
    let first = |nodes: &[u32]| stock.fullest_first(mask(nodes).unwrap(), ResourceId::CPU);
    assert_eq!((first(&[2, 3]), first(&[0, 1])), (smallvec![3, 2], smallvec![1, 0]));
    assert_eq!(allocated(&node, &order, mask(&[2, 3])), "Insufficient NUMA cpu");
    assert_eq!(allocated(&node, &order, mask(&[0, 1])), "0:8000/0 1:2000/0");
}

#[test]
fn bound_cpus_come_from_the_numa_nodes_of_the_shares() {
    let empty = node(2);
    let full = |cpus| binding(cpus, Bind::FullPcpus, false);
    assert_eq!(allocated(&empty, &full(4), None), "0-3");
    assert_eq!(allocated(&empty, &full(4), mask(&[1])), "8-11 1:4000/100");
    assert_eq!(allocated(&empty, &full(5), mask(&[0, 1])), "0-1,8-10 0:2000/50 1:3000/50", "whole CPUs");
    assert_eq!(allocated(&empty, &binding(6, Bind::FullPcpus, true), mask(&[0, 1])), "0-1,8-11 0:2000/50 1:4000/50");
    let pinned = with(node(2), &[("0-5", &[])]);
    assert_eq!(allocated(&pinned, &full(4), mask(&[0])), "not enough cpus available to satisfy request");
    assert_eq!(allocated(&pinned, &full(11), None), "not enough cpus available to satisfy request");
    // A required policy knows beforehand that the CPUs are not there.
    assert_eq!(allocated(&pinned, &binding(4, Bind::FullPcpus, true), mask(&[0])), "Insufficient NUMA cpu");
}

#[test]
fn a_required_policy_is_fulfilled_or_nothing_is_taken() {
    let halves = with(node(1), &[("0,2,4", &[])]);
    let taken = |cpus, bind, is_required| allocated(&halves, &binding(cpus, bind, is_required), None);
    let short = "not enough cpus available to satisfy request";
    assert_eq!((taken(2, Bind::FullPcpus, true).as_str(), taken(4, Bind::FullPcpus, true).as_str()), ("6-7", short));
    assert_eq!(taken(4, Bind::SpreadByPcpus, true), "1,3,5-6");
    assert_eq!(taken(5, Bind::SpreadByPcpus, true), short);
    assert_eq!(taken(5, Bind::SpreadByPcpus, false), "1,3,5-7");
    assert_eq!(taken(4, Bind::FullPcpus, false), "1,3,6-7");
    let odd = allocated(&node(1), &binding(3, Bind::FullPcpus, true), None);
    assert_eq!(odd, "insufficient CPUs to satisfy required cpu bind policy FullPCPUs");
}

#[test]
fn required_numa_nodes_come_first_or_alone() {
    let node = with(node(2), &[("0-1", &[(0, 2000, 0)])]);
    let taken = |cpus, limits: &NumaLimits, affinity| {
        let order = binding(cpus, Bind::FullPcpus, false);
        let allocation = Stock::new(&node, &order, limits).allocate(affinity);
        allocation.map(|allocation| allocation.cpus.to_string()).map_err(|_| ())
    };
    let preferring = NumaLimits { preferred: set("10-11"), ..NumaLimits::default() };
    assert_eq!(
        [taken(2, &preferring, None), taken(4, &preferring, None)],
        [Ok("10-11".into()), Ok("2-3,10-11".into())]
    );
    let only =
        NumaLimits { cpus: Some(set("0-3")), shares: Some([(0, vector(2000, 100))].into()), ..NumaLimits::default() };
    assert_eq!([taken(2, &only, None), taken(4, &only, None)], [Ok("2-3".into()), Err(())], "two of them are taken");
    assert_eq!([taken(2, &only, mask(&[0])), taken(2, &only, mask(&[1]))], [Ok("2-3".into()), Err(())]);
    let all_of = NumaLimits { preferred: set("10-11"), required: set("10-11"), ..NumaLimits::default() };
    assert_eq!([taken(2, &all_of, None), taken(1, &all_of, None)], [Ok("10-11".into()), Err(())]);
}

fn hints(node: &NumaNode, order: &Order<'_>, policy: Policy) -> Vec<String> {
    let scorer = NumaScorer { fill: Fill::LeastAllocated, weights: &[(ResourceId::CPU, 1)] };
    let limits = NumaLimits::default();
    let stock = Stock::new(node, order, &limits);
    let sets = stock.sets(node.numa_nodes().len(), &scorer);
    let hints = order.requests.iter().filter_map(|(resource, _)| stock.hints(&sets, resource, policy));
    let text = |hint: &TopologyHint| {
        let preferred = if hint.is_preferred { "!" } else { "" };
        format!("{}{preferred}={}", hint.affinity.unwrap_or_default(), hint.score)
    };
    hints.map(|hints| hints.map(|hint| text(&hint)).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn sets_of_numa_nodes_that_have_enough_are_hints() {
    let uneven = with(node(2), &[("", &[(0, 4000, 0)])]);
    let both = |hints: &str| vec![hints.to_owned(); 2];
    assert_eq!(hints(&uneven, &sharing(4000, 100), Policy::SingleNumaNode), both("01!=0 10!=50 11=50"));
    assert_eq!(hints(&uneven, &sharing(6000, 100), Policy::SingleNumaNode), both("10!=25 11=37"));
    assert_eq!(hints(&uneven, &sharing(10_000, 100), Policy::BestEffort), both("11!=12"));
    assert_eq!(hints(&uneven, &sharing(4000, 100), Policy::Restricted), both("01!=0 10!=50 11!=50"));
    assert_eq!(hints(&uneven, &sharing(13_000, 100), Policy::Restricted), both(""));
    // Where a NUMA node has nothing left of a resource, sets with it are no hints for that resource.
    let full = with(node(2), &[("", &[(0, 8000, 0)])]);
    assert_eq!(hints(&full, &sharing(2000, 100), Policy::BestEffort), ["10!=75", "10!=75 11=37"]);
}

#[test]
fn cpus_that_others_have_are_no_hint_under_a_required_policy() {
    let pinned = with(node(2), &[("0-5", &[])]);
    let hints_of = |is_required| hints(&pinned, &binding(4, Bind::FullPcpus, is_required), Policy::SingleNumaNode);
    assert_eq!(hints_of(true)[0], "10!=50 11=37");
    assert_eq!(hints_of(false)[0], "10!=50 11=75", "their cpu counts as left");
}

#[test]
fn a_pod_with_cpus_of_its_own_costs_amplified_ones_in_scores_alone() {
    let mut amplified = NumaNode { cpu_ratio: 1.5, ..node(1) };
    amplified.zones[0].total = vector(12_000, 1000);
    let amplified = amplified.settled();
    assert_eq!(hints(&amplified, &binding(4, Bind::FullPcpus, false), Policy::Restricted)[0], "01!=50");
    assert_eq!(allocated(&amplified, &binding(8, Bind::FullPcpus, false), mask(&[0])), "0-7 0:8000/100");
}

proptest! {
    #[test]
    fn nobody_gets_more_than_is_left(
        pods in proptest::collection::vec((0..2_u32, 0..9_usize, any::<bool>(), any::<bool>()), 1..8),
        affinity in prop_oneof![Just(&[0][..]), Just(&[1][..]), Just(&[0, 1][..]), Just(&[][..])],
    ) {
        let mut node = node(2);
        for (kind, cpus, is_required, is_bound) in pods {
            let bind = if kind == 0 { Bind::FullPcpus } else { Bind::SpreadByPcpus };
            let order = if is_bound { binding(cpus, bind, is_required) } else { sharing(milli(cpus), 100) };
            let affinity = mask(affinity).filter(|mask| !mask.is_empty());
            let limits = NumaLimits::default();
            let stock = Stock::new(&node, &order, &limits);
            prop_assert_eq!(stock.allocate(affinity), stock.allocate(affinity));
            let is_odd = is_bound && is_required && bind == Bind::FullPcpus && cpus % 2 != 0;
            if affinity.is_none() && !is_odd {
                prop_assert_eq!(stock.allocate(affinity).is_ok(), stock.has_cpus());
            }
            let Ok(allocation) = stock.allocate(affinity) else { continue };
            let before = node.clone();
            prop_assert!(allocation.cpus.is_subset(node.available_cpus()));
            prop_assert_eq!(allocation.cpus.len(), if is_bound { cpus } else { 0 });
            if affinity.is_some() {
                let sum: i64 = allocation.shares.iter().map(|(_, share)| share.get(ResourceId::CPU)).sum();
                prop_assert_eq!(sum, milli(cpus));
            }
            node.add(&allocation);
            for zone in &node.zones {
                prop_assert!(zone.allocated.exceeding(&zone.total).is_none());
            }
            let mut undone = node.clone();
            undone.remove(&allocation);
            prop_assert_eq!(undone, before);
        }
    }
}
