//! Resources that pods request and no node offers. They have no column: a pod that requests one fits nowhere, so that users' names cost
//! nothing beside the pods that write them.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    num::NonZeroU16,
    sync::{Arc, Weak},
};

use koord_core::intern::Sweep;
use koord_resource::ResourceList;
use koord_scheduling::{ResourceNames, count};

/// Names of resources that the pods of a class request and no node offers.
#[derive(Debug)]
pub struct Unoffered {
    number: NonZeroU16,
    names: Box<[Box<str>]>,
}

/// All of them that are in use, each once, by its number in refusals of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct UnofferedSets {
    by_number: BTreeMap<NonZeroU16, Weak<Unoffered>>,
    by_digest: BTreeMap<u64, Weak<Unoffered>>,
    /// The number that was given last: one that is free again is not given soon, for answers are kept for a while.
    last: u16,
    sweep: Sweep<64>,
}

// === impl Unoffered ===

impl Unoffered {
    /// The number of all sets beyond the limit: their names are unknown.
    const TOO_MANY: NonZeroU16 = NonZeroU16::MAX;

    /// Stands for these names: [`super::Cluster::unoffered`].
    pub fn number(&self) -> NonZeroU16 {
        self.number
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

// === impl UnofferedSets ===

impl UnofferedSets {
    /// Those of these requests that have no number; none where all have.
    pub(super) fn of(&mut self, requests: &ResourceList, resources: &ResourceNames) -> Option<Arc<Unoffered>> {
        let requested = requests.iter().filter(|(name, amount)| count(name, amount) > 0);
        let names = requested.map(|(name, _)| name).filter(|name| resources.get(name).is_none());
        let names: Box<[Box<str>]> = names.map(Into::into).collect();
        if names.is_empty() {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        let digest = hasher.finish();
        let known = self.by_digest.get(&digest).and_then(Weak::upgrade).filter(|known| known.names == names);
        Some(known.unwrap_or_else(|| self.keep(digest, names)))
    }

    /// The names of a number; none when they are unused by now.
    pub(super) fn get(&self, number: NonZeroU16) -> Option<Arc<Unoffered>> {
        self.by_number.get(&number).and_then(Weak::upgrade)
    }

    fn keep(&mut self, digest: u64, names: Box<[Box<str>]>) -> Arc<Unoffered> {
        let Self { by_number, by_digest, sweep, .. } = self;
        if sweep.is_due(by_number.len()) {
            let is_used = |known: &Weak<Unoffered>| known.strong_count() > 0;
            by_number.retain(|_, known| is_used(known));
            by_digest.retain(|_, known| is_used(known));
            sweep.done(by_number.len());
        }
        let number = self.free_number();
        let new = Arc::new(Unoffered { number: number.unwrap_or(Unoffered::TOO_MANY), names });
        if let Some(number) = number {
            self.last = number.get();
            self.by_number.insert(number, Arc::downgrade(&new));
            self.by_digest.insert(digest, Arc::downgrade(&new));
        }
        new
    }

    /// The next unused number.
    fn free_number(&self) -> Option<NonZeroU16> {
        let all = Unoffered::TOO_MANY.get();
        let following = (self.last.saturating_add(1)..all).chain(1..=self.last);
        let mut following = following.filter_map(NonZeroU16::new).filter(|number| *number != Unoffered::TOO_MANY);
        following.find(|number| self.get(*number).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(names: &[&str]) -> ResourceList {
        names.iter().map(|name| (*name, "1".parse().unwrap())).collect()
    }

    #[test]
    fn equal_names_have_one_number_and_what_is_offered_or_not_requested_is_left_out() {
        let (mut sets, mut resources) = (UnofferedSets::default(), ResourceNames::default());
        resources.intern("example.com/gpu");
        assert!(sets.of(&requests(&["cpu", "example.com/gpu"]), &resources).is_none());
        let zero = [("example.com/none", "0".parse().unwrap())].into_iter().collect();
        assert!(sets.of(&zero, &resources).is_none());
        let first = sets.of(&requests(&["cpu", "example.com/a", "example.com/b"]), &resources).unwrap();
        assert_eq!(first.names().collect::<Vec<_>>(), ["example.com/a", "example.com/b"]);
        let same = sets.of(&requests(&["memory", "example.com/a", "example.com/b"]), &resources).unwrap();
        let other = sets.of(&requests(&["example.com/a"]), &resources).unwrap();
        assert!(Arc::ptr_eq(&first, &same) && first.number() != other.number());
        assert!(sets.get(other.number()).is_some_and(|found| Arc::ptr_eq(&found, &other)));
        let number = first.number();
        drop((first, same));
        assert!(sets.get(number).is_none(), "nobody uses it");
    }

    #[test]
    fn unused_names_are_dropped_and_numbers_are_assigned_in_turn() {
        let (mut sets, resources) = (UnofferedSets::default(), ResourceNames::default());
        let kept = sets.of(&requests(&["example.com/kept"]), &resources).unwrap();
        let mut numbers = Vec::new();
        for number in 0..70_000 {
            let name = format!("example.com/{number}");
            numbers.push(sets.of(&requests(&[&name]), &resources).unwrap().number().get());
        }
        assert!(sets.by_number.len() <= 65 && sets.by_digest.len() <= 65, "{}", sets.by_number.len());
        assert_eq!((numbers[0], numbers[1], numbers[65_532]), (2, 3, 65_534));
        assert_eq!(numbers[65_533], 2, "one that is in use is passed over");
        assert!(sets.get(kept.number()).is_some());
    }
}
