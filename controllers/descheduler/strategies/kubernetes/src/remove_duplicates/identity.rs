//! Which pods are alike: those of the same owners with the same images.

use std::{collections::HashMap, sync::Arc};

use koord_descheduler_framework::Pod;

use super::share::Group;

/// The number of what pods have in common that are duplicates where they share a node: namespace, owners and images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(pub(super) usize);

/// Kind and name of an owner; its uid does not count, so that pods of an owner that was made again belong to it.
type OwnerName<'a> = (&'a str, &'a str);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key<'a> {
    namespace: &'a str,
    owners: Vec<OwnerName<'a>>,
    images: Arc<[&'a str]>,
}

/// Pods of one owner with the same images. A pod with two owners is in two groups.
type GroupKey<'a> = (&'a str, OwnerName<'a>, Arc<[&'a str]>);

#[derive(Debug, Default)]
pub(super) struct Identities<'a> {
    known: HashMap<Key<'a>, Identity>,
    groups: HashMap<GroupKey<'a>, usize>,
    /// The groups of each identity.
    groups_of: Vec<Vec<usize>>,
}

impl<'a> Identities<'a> {
    /// The identity of a pod, which is that of its equivalence class.
    pub(super) fn of(&mut self, pod: &'a Pod) -> Identity {
        let mut owners: Vec<OwnerName<'a>> =
            pod.owners.iter().map(|reference| (&*reference.owner.kind, &*reference.owner.name)).collect();
        owners.sort_unstable();
        let mut images: Vec<&str> = pod.template.containers.iter().map(|container| &*container.image).collect();
        images.sort_unstable();
        let key = Key { namespace: pod.namespace(), owners, images: images.into() };
        match self.known.get(&key) {
            Some(identity) => *identity,
            None => self.add(key),
        }
    }

    fn add(&mut self, key: Key<'a>) -> Identity {
        let identity = Identity(self.groups_of.len());
        let mut groups = Vec::new();
        for owner in &key.owners {
            let next = self.groups.len();
            let group = *self.groups.entry((key.namespace, *owner, Arc::clone(&key.images))).or_insert(next);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        self.groups_of.push(groups);
        self.known.insert(key, identity);
        identity
    }

    pub(super) fn groups_of(&self, identity: Identity) -> &[usize] {
        self.groups_of.get(identity.0).map_or(&[], Vec::as_slice)
    }

    /// All groups by their number; `None` for those in which no identity is marked.
    pub(super) fn doubled(&self, is_doubled: &[bool]) -> Vec<Option<Group<'a>>> {
        let mut groups = vec![None; self.groups.len()];
        let mut is_wanted = vec![false; self.groups.len()];
        for (groups, _) in self.groups_of.iter().zip(is_doubled).filter(|(_, is_doubled)| **is_doubled) {
            for group in groups {
                is_wanted[*group] = true;
            }
        }
        for ((_, (kind, owner), _), number) in &self.groups {
            if is_wanted[*number] {
                groups[*number] = Some(Group::new(kind, owner));
            }
        }
        groups
    }
}
