//! CPUs of one NUMA node, for pods that share no CPUs, which are most pods. They are counted in sets instead of sorted.

use std::borrow::Cow;

use koord_scheduling::{CpuSet, NumaPlace};

use super::{CpuPolicies, Offer, SPARING};
use crate::numa::policy::{Bind, Exclusive};

/// Takes so many CPUs of the first NUMA node that has them as they are wanted; none where that is to be found out step by step.
pub(super) fn take(offer: Offer<'_>, available: &CpuSet, needed: usize, policies: CpuPolicies) -> Option<CpuSet> {
    let [_, nodes, _, cpus] = offer.topology.counts();
    let per_core = offer.topology.mean_cpus_per_core();
    if offer.refs_max > 1 || !offer.topology.has_even_cores() || needed > cpus / nodes.max(1) {
        return None;
    }
    if policies.bind == Bind::FullPcpus || per_core == 1 {
        // A core of which another pod has a CPU is not free as a whole anyhow.
        let sparing =
            (policies.exclusive == Exclusive::NumaNode).then(|| beside_exclusive(offer, available, policies.exclusive));
        let of_sparing = sparing.and_then(|free| take_cores(offer, &free, needed));
        return of_sparing.or_else(|| take_cores(offer, available, needed));
    }
    SPARING.into_iter().find_map(|is_sparing| {
        let free = match policies.exclusive {
            exclusive if is_sparing && exclusive != Exclusive::None => {
                Cow::Owned(beside_exclusive(offer, available, exclusive))
            }
            _ => Cow::Borrowed(available),
        };
        take_spread(offer, &free, needed, (per_core, is_sparing))
    })
}

/// The CPUs of cores or NUMA nodes that are not taken exclusively.
fn beside_exclusive(offer: Offer<'_>, available: &CpuSet, exclusive: Exclusive) -> CpuSet {
    let taken = offer.ledger.held_by(exclusive);
    match exclusive {
        Exclusive::None => available.clone(),
        Exclusive::Pcpu => available.difference(&offer.topology.with_siblings(taken)),
        Exclusive::NumaNode => {
            let nodes = offer.topology.nodes().filter(|(_, cpus)| cpus.common(taken) > 0);
            nodes.fold(available.clone(), |free, (_, cpus)| free.difference(cpus))
        }
    }
}

/// Takes whole cores, in their order.
fn take_cores(offer: Offer<'_>, free: &CpuSet, needed: usize) -> Option<CpuSet> {
    let whole = offer.topology.whole_cores(free);
    let (place, _) = first_place(offer, needed, free, |cpus| [whole.common(cpus); 2])?;
    let per_core = offer.topology.mean_cpus_per_core().max(1);
    let (cores, rest) = (needed / per_core, needed % per_core);
    let mut whole = offer.topology.cores_of(place).filter(|core| core.is_subset(&whole));
    let mut taken = CpuSet::default();
    whole.by_ref().take(cores).for_each(|core| taken.insert_all(core));
    if let Some(core) = whole.next().filter(|_| rest > 0) {
        taken.insert_all(&core.first(rest));
    }
    Some(taken)
}

/// Takes CPUs in sweeps, each of the first CPU per core that is left; of one sweep where other pods are spared.
fn take_spread(
    offer: Offer<'_>,
    free: &CpuSet,
    needed: usize,
    (per_core, is_sparing): (usize, bool),
) -> Option<CpuSet> {
    let topology = offer.topology;
    if is_sparing {
        let first = topology.first_of_cores(free);
        let (_, cpus) = first_place(offer, needed, free, |cpus| [first.common(cpus), free.common(cpus)])?;
        return Some(first.intersection(cpus).first(needed));
    }
    let (_, cpus) = first_place(offer, needed, free, |cpus| [free.common(cpus); 2])?;
    let mut left = free.intersection(cpus);
    if left.len() <= per_core {
        return Some(left.first(needed));
    }
    let (mut taken, mut missing) = (CpuSet::default(), needed);
    while missing > 0 && !left.is_empty() {
        let sweep = topology.first_of_cores(&left);
        let first = sweep.first(missing);
        missing -= first.len();
        taken.insert_all(&first);
        left.remove_all(&sweep);
    }
    Some(taken)
}

/// The NUMA node that is filled first, of those that have enough. Of the CPUs of one it is counted how many can be taken, and how many
/// it has free in the sense of [`Fill`](crate::numa::policy::Fill); of a socket all free ones count.
fn first_place<'a>(
    offer: Offer<'a>,
    needed: usize,
    free: &CpuSet,
    count: impl Fn(&CpuSet) -> [usize; 2],
) -> Option<(&'a NumaPlace, &'a CpuSet)> {
    let ranked = offer.topology.places().filter_map(|(place, cpus)| {
        let [usable, counted] = count(cpus);
        (usable >= needed).then(|| (place, cpus, offer.fill.rank(counted)))
    });
    let rank_of_socket =
        |place| offer.fill.rank(offer.topology.socket_of(place).map_or(0, |socket| socket.common(free)));
    // They come in the order of their numbers: of equal ones the first is taken.
    let first = ranked.min_by(|(one, _, rank_of_one), (other, _, rank_of_other)| {
        rank_of_one.cmp(rank_of_other).then_with(|| rank_of_socket(one).cmp(&rank_of_socket(other)))
    });
    first.map(|(place, cpus, _)| (place, cpus))
}

#[cfg(test)]
mod tests {
    use koord_scheduling::{Cpu, CpuTopology};
    use proptest::prelude::*;

    use super::{
        super::{CpuPolicies, take_step_by_step},
        *,
    };
    use crate::numa::{
        ledger::{Ledger, NumaAllocation},
        policy::Fill,
    };

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn what_is_taken_at_once_is_what_is_taken_step_by_step(
            (sockets, nodes, cores, threads) in (1..3_u32, 1..3_u32, 1..5_u32, 1..4_u32),
            siblings_are_apart: bool,
            is_odd: bool,
            bits in any::<u64>(),
            needed in 1..12_usize,
            most: bool,
            by_core: bool,
            exclusive in 0..3_usize,
            held in proptest::array::uniform3(any::<(u64, u64)>()),
        ) {
            let all = sockets * nodes * cores;
            let place = |core: u32, thread: u32| {
                let id = if siblings_are_apart { thread * all + core } else { core * threads + thread };
                // One that sits elsewhere than its siblings.
                let node = if is_odd && id == 1 { 0 } else { core / cores };
                Cpu { id, core, node, socket: core / cores / nodes }
            };
            let topology: CpuTopology = (0..all).flat_map(|core| (0..threads).map(move |thread| place(core, thread))).collect();
            let available: CpuSet = (0..64).filter(|cpu| bits & 1 << cpu != 0).collect();
            let policies = [Exclusive::None, Exclusive::Pcpu, Exclusive::NumaNode];
            let mut ledger = Ledger::default();
            for (exclusive, (one, other)) in policies.into_iter().zip(held) {
                // Few, so that there are free cores and NUMA nodes.
                let cpus = (0..64).filter(|cpu| !bits & one & other & other.rotate_left(9) & 1 << cpu != 0).collect();
                ledger.add(&NumaAllocation { cpus, exclusive, ..NumaAllocation::default() });
            }
            let fill = if most { Fill::MostAllocated } else { Fill::LeastAllocated };
            let offer = Offer { topology: &topology, ledger: &ledger, refs_max: 1, fill };
            let bind = if by_core { Bind::FullPcpus } else { Bind::SpreadByPcpus };
            let policies = CpuPolicies { bind, exclusive: policies[exclusive] };
            if let Some(taken) = take(offer, &available, needed, policies) {
                prop_assert_eq!(Some(taken), take_step_by_step(offer, &available, needed, policies));
            }
        }
    }
}
