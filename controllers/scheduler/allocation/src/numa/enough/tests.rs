use std::borrow::Cow;

use koord_scheduling::{Cpu, CpuSet, CpuTopology};
use proptest::prelude::*;
use smallvec::smallvec;

use super::*;
use crate::numa::{
    accumulator::CpuPolicies,
    allocate::{Order, tests::vector},
    ledger::NumaAllocation,
    node::{NumaLimits, NumaNode},
    policy::{Fill, Policy},
    score::NumaScorer,
    state::NumaState,
    stock_provider::StockProvider,
    topology_manager::{Rules, admit},
    zone::NumaZone,
};

fn cpus(bits: u64) -> CpuSet {
    (0..64).filter(|cpu| bits >> cpu & 1 == 1).collect()
}

/// NUMA nodes of cores with so many threads each; one CPU may sit elsewhere than its siblings, or be a core of its own.
fn node((numa_nodes, cores, threads): (u32, u32, u32), odd: u8, refs_max: u32) -> NumaNode {
    let place = |id: u32| {
        let core = id / threads;
        let (core, node) = match (odd, id) {
            (1, 1) => (core, numa_nodes - 1),
            (2, 1) => (100, 0),
            _ => (core, core / cores),
        };
        Cpu { id, core, node, socket: 0 }
    };
    let topology: CpuTopology = (0..numa_nodes * cores * threads).map(place).collect();
    let zone = |(number, cpus): (u32, &CpuSet)| {
        let total = vector(i64::try_from(cpus.len()).unwrap() * 1000, 1000);
        NumaZone { number, total, cpus: cpus.clone(), ..NumaZone::default() }
    };
    let zones = topology.nodes().map(zone).collect();
    let known = smallvec![ResourceId::CPU, ResourceId::MEMORY];
    NumaNode { cpus: topology, zones, known, refs_max, ..NumaNode::default() }.settled()
}

fn exclusive() -> impl Strategy<Value = Exclusive> {
    prop_oneof![4 => Just(Exclusive::None), 1 => Just(Exclusive::Pcpu), 1 => Just(Exclusive::NumaNode)]
}

/// CPUs that are taken first, the only ones that may be taken, and those that must be; mostly none.
fn limits() -> impl Strategy<Value = NumaLimits> {
    let some = || prop_oneof![3 => Just(None), 1 => any::<u64>().prop_map(Some)];
    (some(), some(), some(), any::<bool>()).prop_map(|(preferred, only, required, has_shares)| NumaLimits {
        preferred: cpus(preferred.unwrap_or(0)),
        cpus: only.map(cpus),
        required: cpus(required.unwrap_or(0) & 3),
        shares: has_shares.then(|| [(0, vector(3500, 1000)), (1, vector(2000, 10))].into()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_by_counting_is_what_is_found_by_choosing(
        shape in (1..4_u32, 1..4_u32, 1..3_u32),
        (odd, refs_max) in (0..6_u8, prop_oneof![4 => Just(1_u32), 1 => Just(2)]),
        pods in proptest::collection::vec((any::<u64>(), exclusive(), 0..2_u32, 0..3000_i64), 0..3),
        (needed, bind, is_required, policies) in (0..8_usize, any::<bool>(), any::<bool>(), exclusive()),
        (is_bound, keeps_apart, cpu, memory) in (any::<bool>(), any::<bool>(), 0..9000_i64, 0..1500_i64),
        limits in prop_oneof![Just(NumaLimits::default()), limits()],
    ) {
        let mut node = node(shape, odd, refs_max);
        for (bits, exclusive, zone, cpu) in pods {
            let cpus = cpus(bits & 0x1111_2222_4444_1248);
            node.add(&NumaAllocation { cpus, exclusive, shares: vec![(zone, vector(cpu, cpu / 3))] });
        }
        let bind = if bind { Bind::FullPcpus } else { Bind::SpreadByPcpus };
        let cpu_order = CpuOrder { needed, policies: CpuPolicies { bind, exclusive: policies }, is_required };
        let cpu = if is_bound { i64::try_from(needed).unwrap() * 1000 } else { cpu };
        let requests = Cow::Owned(vector(cpu, memory));
        let order = Order { requests, cpus: is_bound.then_some(cpu_order), fill: Fill::LeastAllocated };
        let stock = Stock::new(&node, &order, &limits);
        for affinity in node.numa_nodes().subsets().map(Some).chain([None]) {
            let chosen = stock.allocate(affinity).ok();
            let chosen = chosen.map(|chosen| NumaMask::of(chosen.shares.iter().map(|(node, _)| *node)).unwrap());
            prop_assert_eq!(stock.givers(affinity), chosen, "{:?} of {:?}", affinity, node);
        }
        let (policy, all) = (Policy::SingleNumaNode, node.numa_nodes());
        let occupation = keeps_apart.then(|| node.ledger.occupation(&node.cpus));
        let rules = Rules { policy, all, occupation };
        let (state, resources) = (NumaState::default(), [ResourceId::CPU, ResourceId::MEMORY]);
        let scorer = NumaScorer { fill: Fill::MostAllocated, weights: &[(ResourceId::CPU, 1)] };
        let own = StockProvider::new(&stock, &state, &resources, (policy, scorer));
        let best = stock.best_alone(rules, &scorer).filter(|affinity| *affinity != all);
        prop_assert_eq!(best, admit(&[&own], rules).ok().flatten(), "of {:?}", node);
        prop_assert_eq!(best.is_some(), stock.alone(rules).any(|affinity| affinity != all));
    }
}
