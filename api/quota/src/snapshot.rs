//! The quotas of one moment as a tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_types::quota::ROOT_QUOTA;

use crate::{Quota, Quotas};

/// The quotas of one moment, by name and by parent. Cheap to read; it never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    named: BTreeMap<String, Arc<Quota>>,
    below: BTreeMap<String, BTreeSet<String>>,
    bound: BTreeMap<String, String>,
}

/// The ancestors of a quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Above<'a> {
    /// From the parent upwards, without the root.
    pub quotas: Vec<&'a Quota>,
    /// Where the way upwards ends.
    pub top: Top<'a>,
}

/// Where the way upwards from a quota ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Top<'a> {
    /// At the root.
    Root,
    /// At a parent of this name, which does not exist.
    Missing(&'a str),
    /// At a parent of this name, which is on the way already.
    Circle(&'a str),
}

impl<T: Into<Arc<Quota>>> FromIterator<T> for Snapshot {
    /// Of quotas with the same name the first counts, as names are unique in all namespaces.
    fn from_iter<I: IntoIterator<Item = T>>(quotas: I) -> Self {
        let mut snapshot = Self::default();
        for quota in quotas {
            let quota = quota.into();
            if snapshot.named.contains_key(&quota.name) {
                continue;
            }
            for namespace in &quota.namespaces {
                snapshot.bound.entry(namespace.clone()).or_insert_with(|| quota.name.clone());
            }
            snapshot.below.entry(quota.parent.clone()).or_default().insert(quota.name.clone());
            snapshot.named.insert(quota.name.clone(), quota);
        }
        snapshot
    }
}

impl<'a> Quotas<'a> for &'a Snapshot {
    fn find(self, name: &str) -> Option<&'a Quota> {
        self.named.get(name).map(|quota| &**quota)
    }

    fn below(self, parent: &str) -> Vec<&'a Quota> {
        self.below.get(parent).into_iter().flatten().filter_map(|name| self.find(name)).collect()
    }

    fn bound_to(self, namespace: &str) -> Option<&'a str> {
        self.bound.get(namespace).map(String::as_str)
    }
}

impl Snapshot {
    /// All quotas in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Quota> {
        self.named.values().map(|quota| &**quota)
    }

    /// The ancestors of a quota. Ends also where stored quotas are their own ancestors.
    pub fn above<'a>(&'a self, quota: &'a Quota) -> Above<'a> {
        let (mut quotas, mut seen) = (Vec::new(), BTreeSet::from([quota.name.as_str()]));
        let mut parent = quota.parent.as_str();
        let top = loop {
            if parent.is_empty() || parent == ROOT_QUOTA {
                break Top::Root;
            }
            let Some(next) = self.find(parent) else { break Top::Missing(parent) };
            if !seen.insert(&next.name) {
                break Top::Circle(parent);
            }
            quotas.push(next);
            parent = &next.parent;
        };
        Above { quotas, top }
    }

    /// The quotas that the root reaches, each after its parent. The root itself, and quotas below a missing parent or
    /// in a circle, are not among them.
    pub fn top_down(&self) -> Vec<&Quota> {
        let mut order = self.below(ROOT_QUOTA);
        order.retain(|quota| quota.name != ROOT_QUOTA);
        let mut next = 0;
        // A quota has one parent, so none is met twice.
        while let Some(quota) = order.get(next) {
            let below = self.below(&quota.name);
            order.extend(below);
            next += 1;
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(name: &str, parent: &str) -> Quota {
        Quota { name: name.to_owned(), parent: parent.to_owned(), ..Quota::default() }
    }

    fn names<'a>(quotas: &[&'a Quota]) -> Vec<&'a str> {
        quotas.iter().map(|quota| quota.name.as_str()).collect()
    }

    #[test]
    fn the_way_upwards_ends_at_the_root_at_a_missing_parent_or_in_a_circle() {
        let pairs = [("a", ROOT_QUOTA), ("b", "a"), ("c", "b"), ("lost", "nobody"), ("x", "y"), ("y", "x"), ("z", "x")];
        let snapshot: Snapshot = pairs.into_iter().map(|(name, parent)| quota(name, parent)).collect();
        let above = |name| snapshot.above((&snapshot).find(name).unwrap());
        assert_eq!((names(&above("c").quotas), above("c").top), (vec!["b", "a"], Top::Root));
        assert_eq!((names(&above("lost").quotas), above("lost").top), (vec![], Top::Missing("nobody")));
        assert_eq!((names(&above("z").quotas), above("z").top), (vec!["x", "y"], Top::Circle("x")));
        assert_eq!(names(&snapshot.top_down()), ["a", "b", "c"]);
    }

    #[test]
    fn of_two_quotas_with_one_name_the_first_counts() {
        let bound = |name: &str, parent: &str| Quota { namespaces: vec!["n".to_owned()], ..quota(name, parent) };
        let snapshot: Snapshot = [bound("a", "x"), bound("a", "y"), bound("b", "x")].into_iter().collect();
        assert_eq!((&snapshot).find("a").map(|quota| quota.parent.as_str()), Some("x"));
        assert_eq!((names(&(&snapshot).below("y")), (&snapshot).bound_to("n")), (vec![], Some("a")));
    }

    #[test]
    fn a_tree_may_be_a_hundred_thousand_quotas_deep() {
        let parent = |depth: usize| if depth == 0 { ROOT_QUOTA.to_owned() } else { format!("q{}", depth - 1) };
        let snapshot: Snapshot = (0..100_000).map(|depth| quota(&format!("q{depth}"), &parent(depth))).collect();
        assert_eq!(snapshot.top_down().len(), 100_000);
        assert_eq!(snapshot.above((&snapshot).find("q99999").unwrap()).quotas.len(), 99_999);
    }
}
