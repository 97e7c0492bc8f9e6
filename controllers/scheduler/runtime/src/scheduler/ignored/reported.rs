//! What was reported of which object, so that it is reported once.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use koord_runtime::uid::Uid;

/// The most objects whose reports are remembered; with more they are reported again.
const REPORTED_MAX: usize = 1 << 16;

/// The part of an object that findings are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Its labels, annotations and fields.
    Object,
    /// The labels and annotations of a pod by which it is placed.
    Spec,
    /// The recorded allocation of a pod.
    Given,
    /// What a gang lacks, by its name.
    Gang,
}

/// A hash of the last findings, by part and object.
#[derive(Default)]
pub(super) struct Reported(BTreeMap<(Part, Uid), u64>);

impl Reported {
    /// Whether these findings differ from the last ones.
    pub(super) fn is_new(&mut self, part: Part, uid: &Uid, findings: &[String]) -> bool {
        let key = (part, uid.clone());
        if findings.is_empty() {
            self.0.remove(&key);
            return false;
        }
        let mut hasher = DefaultHasher::new();
        findings.hash(&mut hasher);
        let hash = hasher.finish();
        if self.0.get(&key) == Some(&hash) {
            return false;
        }
        if self.0.len() >= REPORTED_MAX {
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
    fn equal_findings_are_reported_once_for_each_part_and_again_after_they_were_gone() {
        let mut reported = Reported::default();
        let mut is_new = |part, uid: &str, findings: &[&str]| {
            let findings: Vec<String> = findings.iter().map(|text| (*text).to_owned()).collect();
            reported.is_new(part, &Uid::from(uid), &findings)
        };
        assert_eq!([is_new(Part::Spec, "a", &["x"]), is_new(Part::Spec, "a", &["x"])], [true, false]);
        assert_eq!([is_new(Part::Given, "a", &["x"]), is_new(Part::Spec, "b", &["x"])], [true, true]);
        assert_eq!([is_new(Part::Spec, "a", &["y"]), is_new(Part::Spec, "a", &[])], [true, false]);
        assert!(is_new(Part::Spec, "a", &["y"]), "it was gone");
    }
}
