//! The indexes over gangs, made anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::{key::ObjectKey, uid::Uid};

use super::{GangGroup, Gangs, Group, Member};

/// Of each group the gangs that declare it.
type Groups = BTreeMap<GangGroup, BTreeSet<ObjectKey>>;

impl Gangs {
    /// Whether a member is known like this.
    pub fn knows(&self, uid: &Uid, member: &Member, is_placed: bool) -> bool {
        self.entry(uid).is_some_and(|(known, stage)| known == member && stage.is_placed == is_placed)
    }

    /// Whether a PodGroup declares this gang.
    pub fn has_pod_group(&self, id: &ObjectKey) -> bool {
        self.by_id.get(id).is_some_and(|gang| gang.has_pod_group)
    }

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
        let is_same = self.groups.iter().map(|(name, group)| (name, &group.gangs)).eq(&groups);
        let naming = groups.keys().fold(BTreeMap::<_, BTreeSet<_>>::new(), |mut naming, group| {
            for id in group.ids().iter() {
                naming.entry(id.clone()).or_default().insert(group.clone());
            }
            naming
        });
        let bound = self.by_id.values().filter(|gang| gang.members.values().any(|(member, _)| member.is_bound));
        let missed: BTreeSet<GangGroup> = bound
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
        for (name, gangs) in groups {
            let group = known.remove(&name).unwrap_or_default();
            let is_satisfied = group.is_satisfied || missed.contains(&name);
            let ids = Arc::clone(name.ids());
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
            gang.group = gang.group_of(id);
            groups.entry(gang.group.clone()).or_default().insert(id.clone());
        }
        groups
    }
}
