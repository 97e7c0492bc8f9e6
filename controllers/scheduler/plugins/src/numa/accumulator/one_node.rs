//! Whole cores of one NUMA node, for pods that share CPUs with nobody and mind nobody: what most pods get.

use koord_scheduling::{CpuSet, NumaPlace};

use super::{Offer, Wish};
use crate::numa::policy::{Bind, Exclusive};

/// Takes so many CPUs of the first NUMA node that has them in whole cores; none where that is to be found out step by step.
pub(super) fn take(offer: Offer<'_>, available: &CpuSet, needed: usize, wish: Wish) -> Option<CpuSet> {
    let topology = offer.topology;
    let [cores, nodes, _, cpus] = topology.counts();
    let (per_core, per_node) = (cpus / cores.max(1), cpus / nodes.max(1));
    let minds = wish.bind != Bind::FullPcpus || wish.exclusive != Exclusive::None || offer.refs_max > 1;
    if minds || needed > per_node {
        return None;
    }
    let is_whole = |core: &&CpuSet| core.common(available) == per_core;
    let whole = |place: &NumaPlace| topology.cores_of(place).filter(is_whole).count() * per_core;
    let free = topology.places().map(|(place, _)| (place, whole(place)));
    let of_socket = |socket: u32| -> usize {
        let places = topology.places().filter(|(place, _)| place.socket == socket);
        places.map(|(_, cpus)| cpus.common(available)).sum()
    };
    let has_enough = free.filter(|(_, free)| *free >= needed);
    let (place, _) = has_enough
        .min_by_key(|(place, free)| (offer.fill.rank(*free), offer.fill.rank(of_socket(place.socket)), place.node))?;
    let mut taken = CpuSet::default();
    let whole =
        topology.cores_of(place).filter(is_whole).flat_map(|core| core.iter().filter(|cpu| available.contains(*cpu)));
    whole.take(needed).for_each(|cpu| taken.insert(cpu));
    Some(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{Wish, take_step_by_step},
        *,
    };
    use crate::numa::{ledger::Ledger, policy::Fill};
    use koord_scheduling::{Cpu, CpuTopology};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn what_is_taken_at_once_is_what_is_taken_step_by_step(
            (sockets, nodes, cores, threads) in (1..3_u32, 1..3_u32, 1..5_u32, 1..3_u32),
            siblings_are_apart: bool,
            is_odd: bool,
            available in any::<u64>(),
            needed in 1..20_usize,
            most: bool,
        ) {
            let all = sockets * nodes * cores;
            let place = |core: u32, thread: u32| {
                let id = if siblings_are_apart { thread * all + core } else { core * threads + thread };
                // One that sits elsewhere than its siblings.
                let node = if is_odd && id == 1 { 0 } else { core / cores };
                Cpu { id, core, node, socket: core / cores / nodes }
            };
            let topology: CpuTopology = (0..all).flat_map(|core| (0..threads).map(move |thread| place(core, thread))).collect();
            let available: CpuSet = (0..64).filter(|cpu| available & 1 << cpu != 0).collect();
            let (ledger, fill) = (Ledger::default(), if most { Fill::MostAllocated } else { Fill::LeastAllocated });
            let offer = Offer { topology: &topology, held: ledger.held(), refs_max: 1, fill };
            let wish = Wish { bind: Bind::FullPcpus, exclusive: Exclusive::None };
            if let Some(taken) = take(offer, &available, needed, wish) {
                prop_assert_eq!(Some(taken), take_step_by_step(offer, &available, needed, wish));
            }
        }
    }
}
