//! The gangs that are placed together: a gang group.

use std::{
    cmp::Ordering,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use koord_core::key::ObjectKey;

/// A list of gangs, sorted, each once. Users write it, and it may have tens of thousands of names: copies share it, it is put into words
/// once, and two of them are compared by a digest first.
#[derive(Clone, Eq)]
pub struct GangGroup {
    ids: Arc<[ObjectKey]>,
    name: Arc<str>,
    digest: u64,
}

impl GangGroup {
    /// A group of these gangs.
    pub fn new(mut ids: Vec<ObjectKey>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        let name: Arc<str> = ids.iter().map(ObjectKey::as_str).collect::<Vec<_>>().join(",").into();
        // The same in every process: the order of groups depends on it.
        let mut hasher = DefaultHasher::new();
        str::hash(&name, &mut hasher);
        Self { ids: ids.into(), name, digest: hasher.finish() }
    }

    pub fn ids(&self) -> &Arc<[ObjectKey]> {
        &self.ids
    }

    /// The names of its gangs, with commas between them.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Default for GangGroup {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl PartialEq for GangGroup {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl PartialOrd for GangGroup {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GangGroup {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.name, &other.name) {
            return Ordering::Equal;
        }
        self.digest.cmp(&other.digest).then_with(|| self.name.cmp(&other.name))
    }
}

impl fmt::Debug for GangGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_what_its_gangs_are_in_any_order() {
        let group = |ids: &[&str]| GangGroup::new(ids.iter().map(|id| ObjectKey::cluster(id)).collect());
        assert_eq!(group(&["ns/b", "ns/a", "ns/b"]), group(&["ns/a", "ns/b"]));
        assert_eq!(&**group(&["ns/b", "ns/a"]).name(), "ns/a,ns/b");
        assert_ne!(group(&["ns/a"]), group(&["ns/a", "ns/b"]));
        assert_eq!(group(&["ns/a"]).cmp(&group(&["ns/b"])), group(&["ns/b"]).cmp(&group(&["ns/a"])).reverse());
        let digests = GangGroup { digest: group(&["ns/b"]).digest, ..group(&["ns/a"]) };
        assert_ne!(digests, group(&["ns/b"]), "two that have the same digest");
    }
}
