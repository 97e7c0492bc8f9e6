//! Which CPUs are of one core, for all CPUs of a set at once.

use std::collections::BTreeMap;

use crate::CpuSet;

/// By how much the numbers of CPUs of one core differ: each distance with the CPUs that have a sibling so far below them.
///
/// Machines number CPUs regularly, so that there is one distance where cores have two CPUs, and all siblings of a set are found by moving its bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Siblings(Vec<(u32, CpuSet)>);

impl Siblings {
    /// None where numbers are so irregular that it is better to go through the cores.
    pub(crate) fn of(cores: &[(u32, CpuSet)]) -> Option<Self> {
        const DISTANCES_MAX: usize = 8;
        let mut siblings: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (_, core) in cores {
            for (at, cpu) in core.iter().enumerate() {
                for below in core.iter().take(at) {
                    siblings.entry(cpu - below).or_default().insert(cpu);
                    if siblings.len() > DISTANCES_MAX {
                        return None;
                    }
                }
            }
        }
        Some(Self(siblings.into_iter().collect()))
    }

    /// The CPUs of a set, and all others of their cores.
    pub(crate) fn with_siblings(&self, cpus: &CpuSet) -> CpuSet {
        let words = self.0.iter().map(|(_, above)| above.words()).fold(cpus.words(), usize::max);
        CpuSet::of_words(words, |at| self.word_with_siblings(at, |at| cpus.word(at)))
    }

    /// The CPUs of a set, among all, of whose cores none is missing there.
    pub(crate) fn whole_cores(&self, cpus: &CpuSet, all: &CpuSet) -> CpuSet {
        let missing = |at| all.word(at) & !cpus.word(at);
        CpuSet::of_words(all.words(), |at| all.word(at) & !self.word_with_siblings(at, missing))
    }

    /// A word of a set, with the siblings of all that are in the set.
    #[inline]
    fn word_with_siblings(&self, at: usize, word: impl Fn(usize) -> u64) -> u64 {
        self.0.iter().fold(word(at), |all, (distance, above)| {
            let lower = moved_down(at, *distance, |at| word(at) & above.word(at));
            all | moved_up(at, *distance, &word) & above.word(at) | lower
        })
    }

    /// Of each core the first CPU that is in a set.
    pub(crate) fn first_of_cores(&self, cpus: &CpuSet) -> CpuSet {
        CpuSet::of_words(cpus.words(), |at| {
            self.0.iter().fold(cpus.word(at), |first, (distance, above)| {
                first & !(moved_up(at, *distance, |at| cpus.word(at)) & above.word(at))
            })
        })
    }
}

/// A word of a set all of whose numbers are raised by a distance.
#[inline]
fn moved_up(at: usize, distance: u32, word: impl Fn(usize) -> u64) -> u64 {
    let (words, bits) = ((distance / 64) as usize, distance % 64);
    let word = |at: Option<usize>| at.map_or(0, &word);
    word(at.checked_sub(words)) << bits | word(at.checked_sub(words + 1)).checked_shr(64 - bits).unwrap_or(0)
}

/// A word of a set all of whose numbers are lowered by a distance.
#[inline]
fn moved_down(at: usize, distance: u32, word: impl Fn(usize) -> u64) -> u64 {
    let (words, bits) = ((distance / 64) as usize, distance % 64);
    word(at + words) >> bits | word(at + words + 1).checked_shl(64 - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Cpu, CpuSet, CpuTopology};

    proptest! {
        #[test]
        fn they_are_found_however_cpus_are_numbered(
            (is_regular, distance, per_core) in (any::<bool>(), 1..140_u32, 1..6_u32),
            cores in proptest::collection::vec(0..40_u32, 300),
            cpus in proptest::collection::btree_set(0..300_u32, 0..300),
        ) {
            let core = |id: u32| if is_regular { id % distance + id / distance / per_core * distance } else { cores[id as usize] };
            let topology: CpuTopology = (0..300).map(|id| Cpu { id, core: core(id), node: 0, socket: 0 }).collect();
            let cpus: CpuSet = cpus.into_iter().collect();
            let (mut whole, mut touched, mut first) = (CpuSet::default(), CpuSet::default(), CpuSet::default());
            for (_, core) in topology.cores() {
                let common = core.intersection(&cpus);
                if let Some(cpu) = common.iter().next() {
                    first.insert(cpu);
                    touched.insert_all(core);
                }
                if common == *core {
                    whole.insert_all(core);
                }
            }
            prop_assert_eq!(topology.whole_cores(&cpus), whole);
            prop_assert_eq!(topology.with_siblings(&cpus), touched);
            prop_assert_eq!(topology.first_of_cores(&cpus), first);
        }
    }
}
