//! Sets of fields, as `managedFields` records them (`FieldsV1`), and their algebra.
//!
//! A set holds paths. A path's steps are written as in FieldsV1: `f:name` for a field, `k:{"name":"a"}` for the list
//! item with these keys, `v:"x"` for the item of a set, `i:0` for an index. Owning `spec.a.b` says nothing about
//! `spec.a`: membership is per path (`"."` beside deeper steps).

mod compare;
mod extract;
mod merge;
mod recorded;
mod remove;
mod step;
mod value;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(crate) use compare::same;
pub use compare::{Comparison, compare};
pub use extract::extract;
pub use merge::merge;
pub(crate) use recorded::recorded;
pub use remove::remove;
pub use step::Step;
pub use value::{TypeMismatch, check, fields_of, with_named_fields};

/// A set of paths into objects of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<Step, Entry>,
}

/// What a set holds at and below one step. Never empty: it is a member, or has members below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    member: bool,
    below: FieldSet,
}

/// Text that is no FieldsV1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fieldsV1 must be an object of f:, k:, v: and i: entries, not {0}")]
pub struct NotFields(pub String);

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of some paths of plain fields, such as `&[&["metadata", "name"]]`.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path.iter().map(|name| Step::field(name)).collect::<Vec<_>>());
        }
        set
    }

    /// Whether the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a path. The empty path is not added: an object as a whole is owned by nobody.
    pub fn insert(&mut self, path: &[Step]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for step in parents {
            set = &mut set.entries.entry(step.clone()).or_default().below;
        }
        set.entries.entry(last.clone()).or_default().member = true;
    }

    /// Whether a path is a member.
    pub fn contains(&self, path: &[Step]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut set = self;
        for step in parents {
            match set.entries.get(step) {
                Some(entry) => set = &entry.below,
                None => return false,
            }
        }
        set.entries.get(last).is_some_and(|entry| entry.member)
    }

    /// Whether a single step is a member, and the set below it.
    fn at(&self, step: &Step) -> (bool, Option<&FieldSet>) {
        match self.entries.get(step) {
            None => (false, None),
            Some(entry) => (entry.member, Some(&entry.below).filter(|below| !below.is_empty())),
        }
    }

    /// Every path of either set.
    #[must_use]
    pub fn union(mut self, other: &FieldSet) -> FieldSet {
        for (step, theirs) in &other.entries {
            let ours = self.entries.entry(step.clone()).or_default();
            ours.member |= theirs.member;
            ours.below = std::mem::take(&mut ours.below).union(&theirs.below);
        }
        self
    }

    /// The paths of both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |ours, theirs| Entry {
            member: ours.member && theirs.is_some_and(|theirs| theirs.member),
            below: theirs.map(|theirs| ours.below.intersection(&theirs.below)).unwrap_or_default(),
        })
    }

    /// The paths of this set that the other one lacks.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |ours, theirs| match theirs {
            None => ours.clone(),
            Some(theirs) => {
                Entry { member: ours.member && !theirs.member, below: ours.below.difference(&theirs.below) }
            }
        })
    }

    /// Takes the paths of another set out of this one; costs what the other one holds.
    pub fn subtract(&mut self, other: &FieldSet) {
        for (step, theirs) in &other.entries {
            let Some(ours) = self.entries.get_mut(step) else { continue };
            ours.member &= !theirs.member;
            ours.below.subtract(&theirs.below);
            if !ours.member && ours.below.is_empty() {
                self.entries.remove(step);
            }
        }
    }

    /// The paths of this set that are neither in the other one nor below one of its members.
    #[must_use]
    pub fn difference_below(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |ours, theirs| match theirs {
            None => ours.clone(),
            Some(theirs) if theirs.member => Entry::default(),
            Some(theirs) => Entry { member: ours.member, below: ours.below.difference_below(&theirs.below) },
        })
    }

    fn combine(&self, other: &FieldSet, with: impl Fn(&Entry, Option<&Entry>) -> Entry) -> FieldSet {
        let combined = self.entries.iter().map(|(step, ours)| (step.clone(), with(ours, other.entries.get(step))));
        FieldSet { entries: combined.filter(|(_, entry)| entry.member || !entry.below.is_empty()).collect() }
    }

    /// Every member, in order.
    pub fn paths(&self) -> Vec<Vec<Step>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<Step>, paths: &mut Vec<Vec<Step>>) {
        for (step, entry) in &self.entries {
            prefix.push(step.clone());
            if entry.member {
                paths.push(prefix.clone());
            }
            entry.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// The set as FieldsV1.
    pub fn to_json(&self) -> Value {
        let fields = self.entries.iter().map(|(step, entry)| {
            let mut below = match entry.below.to_json() {
                Value::Object(below) => below,
                _ => Map::new(),
            };
            if entry.member && !below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            (step.to_string(), Value::Object(below))
        });
        Value::Object(fields.collect())
    }

    /// Reads FieldsV1.
    pub fn from_json(fields: &Value) -> Result<FieldSet, NotFields> {
        let fields = fields.as_object().ok_or_else(|| NotFields(fields.to_string()))?;
        let mut set = FieldSet::new();
        for (name, below) in fields.iter().filter(|(name, _)| *name != ".") {
            let step = Step::parse(name).ok_or_else(|| NotFields(name.clone()))?;
            let inner = FieldSet::from_json(below)?;
            let member = inner.is_empty() || below.get(".").is_some();
            set.entries.insert(step, Entry { member, below: inner });
        }
        Ok(set)
    }
}

/// A path as conflicts show it: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[Step]) -> String {
    path.iter().map(Step::shown).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(fields: Value) -> FieldSet {
        FieldSet::from_json(&fields).unwrap()
    }

    #[test]
    fn fields_v1_reads_and_writes() {
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:set": {"v:\"x\"": {}}, "f:list": {"i:3": {}}}});
        assert_eq!(set(fields.clone()).to_json(), fields);
        let paths: Vec<String> = set(fields).paths().iter().map(|path| path_text(path)).collect();
        assert_eq!(
            paths,
            [
                r#".spec.containers[name="a"]"#,
                r#".spec.containers[name="a"].image"#,
                ".spec.list[3]",
                r#".spec.set[="x"]"#
            ]
        );
        for wrong in [json!({"bad": {}}), json!([]), json!({"f:a": 1}), json!({"k:nope": {}}), json!({"i:x": {}})] {
            assert!(FieldSet::from_json(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_algebra_is_per_path() {
        let left = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
        let right = set(json!({"f:a": {"f:x": {}, "f:y": {}}, "f:c": {}}));
        assert_eq!(
            left.clone().union(&right).to_json(),
            json!({"f:a": {".": {}, "f:x": {}, "f:y": {}}, "f:b": {}, "f:c": {}})
        );
        assert_eq!(left.intersection(&right).to_json(), json!({"f:a": {"f:x": {}}}));
        assert_eq!(left.difference(&right).to_json(), json!({"f:a": {}, "f:b": {}}));
        for (one, other) in [(&left, &right), (&right, &left), (&left, &left)] {
            let mut rest = one.clone();
            rest.subtract(other);
            assert_eq!(rest, one.difference(other));
        }
        assert_eq!(left.difference_below(&set(json!({"f:a": {}}))).to_json(), json!({"f:b": {}}));
        assert!(left.difference(&left).is_empty());
        assert!(left.contains(&[Step::field("a")]) && !right.contains(&[Step::field("a")]));
    }
}
