//! Which pods are alike: those of the same owners with the same images.

use std::{collections::BTreeMap, sync::Arc};

use koord_descheduler_framework::{Pod, pod::OwnerReference};

use super::share::Group;

/// The number of what pods have in common that are duplicates where they share a node: namespace, owners and images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(pub(super) usize);

/// Kind and name of an owner; its uid does not count, so that pods of an owner that was made again belong to it.
type OwnerName<'a> = (&'a str, &'a str);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    namespace: &'a str,
    owners: Vec<OwnerName<'a>>,
    images: Arc<[&'a str]>,
}

/// Pods of one owner with the same images. A pod with two owners is in two groups.
type GroupKey<'a> = (&'a str, OwnerName<'a>, Arc<[&'a str]>);

/// The identity of pods with these owners.
type WithOwners<'a> = (&'a Arc<[OwnerReference]>, Identity);

#[derive(Debug)]
pub(super) struct Identities<'a> {
    known: BTreeMap<Key<'a>, Identity>,
    groups: BTreeMap<GroupKey<'a>, usize>,
    /// The groups of each identity.
    groups_of: Vec<Vec<usize>>,
    /// By the number of a template.
    by_template: Vec<Vec<WithOwners<'a>>>,
}

impl<'a> Identities<'a> {
    pub(super) fn new(templates_max: usize) -> Self {
        let by_template = vec![Vec::new(); templates_max];
        Self { known: BTreeMap::new(), groups: BTreeMap::new(), groups_of: Vec::new(), by_template }
    }

    /// The identity of a pod with the template of this number.
    pub(super) fn of(&mut self, template: usize, pod: &'a Pod) -> Identity {
        let known = self.by_template.get(template).into_iter().flatten();
        let mut known = known.filter(|(owners, _)| Arc::ptr_eq(owners, &pod.owners) || **owners == pod.owners);
        if let Some((_, identity)) = known.next() {
            return *identity;
        }
        let mut owners: Vec<OwnerName<'a>> =
            pod.owners.iter().map(|reference| (&*reference.owner.kind, &*reference.owner.name)).collect();
        owners.sort_unstable();
        let mut images: Vec<&str> = pod.template.containers.iter().map(|container| &*container.image).collect();
        images.sort_unstable();
        let key = Key { namespace: pod.namespace(), owners, images: images.into() };
        let identity = match self.known.get(&key) {
            Some(identity) => *identity,
            None => self.add(key),
        };
        if let Some(known) = self.by_template.get_mut(template) {
            known.push((&pod.owners, identity));
        }
        identity
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
