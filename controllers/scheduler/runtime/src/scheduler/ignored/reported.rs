//! What was said of which object, so that it is said once.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use koord_runtime::uid::Uid;

/// Of how many objects it is remembered what was said; with more it is said again.
const TOLD_MAX: usize = 1 << 16;

/// The part of an object of which something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Its labels, annotations and fields.
    Object,
    /// What a pod says of how it is to be placed.
    Wishes,
    /// What is recorded of what a pod was given.
    Given,
    /// What a gang lacks, by its name.
    Gang,
}

/// A hash of what was said last, by part and object.
#[derive(Default)]
pub(super) struct Reported(BTreeMap<(Part, Uid), u64>);

impl Reported {
    /// Whether this is something else than what was said last; now it is what was said.
    pub(super) fn is_new(&mut self, part: Part, uid: &Uid, said: &[String]) -> bool {
        let key = (part, uid.clone());
        if said.is_empty() {
            self.0.remove(&key);
            return false;
        }
        let mut hasher = DefaultHasher::new();
        said.hash(&mut hasher);
        let hash = hasher.finish();
        if self.0.get(&key) == Some(&hash) {
            return false;
        }
        if self.0.len() >= TOLD_MAX {
            self.0.clear();
        }
        self.0.insert(key, hash);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_once_of_each_part_and_again_after_it_was_gone() {
        let mut reported = Reported::default();
        let mut is_new = |part, uid: &str, said: &[&str]| {
            let said: Vec<String> = said.iter().map(|text| (*text).to_owned()).collect();
            reported.is_new(part, &Uid::from(uid), &said)
        };
        assert_eq!([is_new(Part::Wishes, "a", &["x"]), is_new(Part::Wishes, "a", &["x"])], [true, false]);
        assert_eq!([is_new(Part::Given, "a", &["x"]), is_new(Part::Wishes, "b", &["x"])], [true, true]);
        assert_eq!([is_new(Part::Wishes, "a", &["y"]), is_new(Part::Wishes, "a", &[])], [true, false]);
        assert!(is_new(Part::Wishes, "a", &["y"]), "it was gone");
    }
}
