//! The indexes over gangs, made anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::{key::ObjectKey, uid::Uid};

use super::{Gangs, Group, Member};

/// Of each group the gangs that it names, and those that declare it.
type Groups = BTreeMap<Arc<str>, (Vec<ObjectKey>, BTreeSet<ObjectKey>)>;

impl Gangs {
    /// Whether a member is known like this.
    pub fn knows(&self, uid: &Uid, member: &Member, is_placed: bool) -> bool {
        self.entry(uid).is_some_and(|(known, stage)| known == member && stage.is_placed == is_placed)
    }

    /// All members.
    pub fn uids(&self) -> impl Iterator<Item = &Uid> {
        let indexed = self.members.keys();
        let of_gangs = self.by_id.values().flat_map(|gang| gang.members.keys());
        indexed.chain(of_gangs.filter(|uid| !self.members.contains_key(*uid)))
    }

    /// The gangs that a PodGroup declares.
    pub fn with_pod_groups(&self) -> impl Iterator<Item = &ObjectKey> {
        self.by_id.iter().filter(|(_, gang)| gang.has_pod_group).map(|(id, _)| id)
    }

    /// Compares which groups there are, which gangs are in them and whether one of them has a bound member with the gangs, and sets
    /// right what differs.
    pub fn audit_groups(&mut self) -> Option<String> {
        let groups = self.groups_of_gangs();
        let kept = self.groups.iter().map(|(name, group)| (name, &group.ids, &group.gangs));
        let is_same = kept.eq(groups.iter().map(|(name, (ids, gangs))| (name, ids, gangs)));
        let naming = groups.iter().fold(BTreeMap::<_, BTreeSet<_>>::new(), |mut naming, (name, (ids, _))| {
            for id in ids {
                naming.entry(id.clone()).or_default().insert(Arc::clone(name));
            }
            naming
        });
        let bound = self.by_id.values().filter(|gang| gang.members.values().any(|(member, _)| member.is_bound));
        let missed: BTreeSet<Arc<str>> = bound
            .map(|gang| &gang.group)
            .filter(|name| self.groups.get(*name).is_none_or(|group| !group.is_satisfied))
            .cloned()
            .collect();
        if is_same && self.naming == naming && missed.is_empty() {
            return None;
        }
        let details = format!(
            "{} groups with {} names instead of {} with {}, {} not known to have a bound member",
            self.groups.len(),
            self.naming.len(),
            groups.len(),
            naming.len(),
            missed.len()
        );
        let mut known = std::mem::take(&mut self.groups);
        for (name, (ids, gangs)) in groups {
            let group = known.remove(&name).unwrap_or_default();
            let is_satisfied = group.is_satisfied || missed.contains(&name);
            self.groups.insert(name, Group { ids, gangs, is_satisfied, ..group });
        }
        self.naming = naming;
        for name in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.review(&name, None);
        }
        Some(details)
    }

    /// As if no group were known.
    #[cfg(test)]
    pub fn forget_groups(&mut self) {
        self.groups.clear();
        self.naming.clear();
    }

    fn groups_of_gangs(&mut self) -> Groups {
        let mut groups = Groups::new();
        for (id, gang) in &mut self.by_id {
            let (name, ids) = gang.group_of(id);
            groups.entry(Arc::clone(&name)).or_insert_with(|| (ids, BTreeSet::new())).1.insert(id.clone());
            if gang.group != name {
                gang.group = name;
            }
        }
        groups
    }
}
