//! All gangs with their members: which pods may be tried, alone or in a round (3E.1 to 3E.4).

mod audit;
mod not_yet;
mod order;
mod summary;
#[cfg(test)]
mod tests;
mod workload;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::{key::ObjectKey, uid::Uid};

pub use self::not_yet::NotYet;
use self::order::order;
use super::{
    declaration::{Declaration, MatchPolicy},
    group::GangGroup,
    round::{Candidate, Outcome, Round},
};

/// A pod of a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its namespace and name.
    pub key: ObjectKey,
    pub gang: ObjectKey,
    /// Who schedules it. A round has members of one scheduler.
    pub scheduler: Arc<str>,
    /// Whether it may be placed, now that nothing but its gang is in the way.
    pub is_ready: bool,
    /// Whether it has a node.
    pub is_bound: bool,
    /// Its priority; the member with the highest one is tried for its group.
    pub priority: i32,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// Its place in the order of its gang; members without one come after those that have one.
    pub index: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Gangs {
    by_id: BTreeMap<ObjectKey, Gang>,
    /// The gang of every member.
    members: BTreeMap<Uid, ObjectKey>,
    groups: BTreeMap<GangGroup, Group>,
    /// The groups that name a gang.
    naming: BTreeMap<ObjectKey, BTreeSet<GangGroup>>,
    /// Members that may be tried since the last look.
    woken: BTreeSet<Uid>,
}

#[derive(Clone, Debug, Default)]
struct Gang {
    group: GangGroup,
    declaration: Option<Declaration>,
    has_pod_group: bool,
    members: BTreeMap<Uid, (Member, Stage)>,
}

/// Where a member is, beside what its object says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stage {
    /// It is placed on a node, if only for a trial.
    is_placed: bool,
    /// With how many members its group was complete, itself among them; 0 while it was not. If it comes back it is scheduled alone.
    released_with: usize,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// The gangs that it names.
    ids: Arc<[ObjectKey]>,
    /// Those among them that declare this group.
    gangs: BTreeSet<ObjectKey>,
    /// A member of it was bound.
    is_satisfied: bool,
    /// The members that may be tried, as of the last look.
    admitted: BTreeSet<Uid>,
    /// The member with which its gangs became complete: of equals it is tried first.
    last: Option<Uid>,
    is_complete: bool,
    /// Its members were tried, and it was not complete with them: they are tried again when one of them is another.
    was_tried: bool,
}

impl Gang {
    /// The group that a gang of this id declares: itself where it declares nothing.
    fn group_of(&self, id: &ObjectKey) -> GangGroup {
        let declared = self.declaration.as_ref().map(|declared| declared.group.clone());
        declared.unwrap_or_else(|| GangGroup::new(vec![id.clone()]))
    }
}

impl Gangs {
    /// A member was added or changed, perhaps in what other plugins look at. `declared` is what its annotations declare, where no
    /// PodGroup does.
    pub fn set(&mut self, uid: &Uid, member: Member, declared: Option<Declaration>, is_changed: bool) {
        if self.members.get(uid).is_some_and(|gang| *gang != member.gang) {
            self.remove(uid);
        }
        let id = member.gang.clone();
        self.members.insert(uid.clone(), id.clone());
        let gang = self.by_id.entry(id.clone()).or_default();
        if gang.declaration.is_none() {
            gang.declaration = declared;
        }
        let (known, stage) = gang.members.get(uid).cloned().unzip();
        let is_other = is_changed || known.as_ref() != Some(&member);
        gang.members.insert(uid.clone(), (member, stage.unwrap_or_default()));
        self.changed(&id, Some(uid), is_other);
    }

    /// A member is gone. A gang that its members declared is gone with the last of them.
    pub fn remove(&mut self, uid: &Uid) {
        let Some(id) = self.members.remove(uid) else { return };
        if let Some(gang) = self.by_id.get_mut(&id) {
            gang.members.remove(uid);
        }
        self.woken.remove(uid);
        self.changed(&id, None, true);
    }

    /// A PodGroup was added or changed.
    pub fn declare(&mut self, id: &ObjectKey, declaration: Declaration) {
        let gang = self.by_id.entry(id.clone()).or_default();
        let is_other = gang.declaration.as_ref() != Some(&declaration);
        (gang.declaration, gang.has_pod_group) = (Some(declaration), true);
        self.changed(id, None, is_other);
    }

    /// A PodGroup was deleted.
    pub fn undeclare(&mut self, id: &ObjectKey) {
        if let Some(gang) = self.by_id.get_mut(id) {
            (gang.declaration, gang.has_pod_group) = (None, false);
        }
        self.changed(id, None, true);
    }

    /// A pod was placed on a node, or is not there any more, if only for a trial.
    pub fn set_placed(&mut self, uid: &Uid, is_placed: bool) {
        if let Some((_, stage)) = self.entry_mut(uid) {
            stage.is_placed = is_placed;
        }
    }

    /// A round is over. Where it is complete, its group once had enough, and those that were placed are scheduled alone from then on.
    pub fn conclude(&mut self, outcome: &Outcome) {
        if !outcome.is_complete {
            return;
        }
        for uid in &outcome.placed {
            if let Some((_, stage)) = self.entry_mut(uid) {
                stage.released_with = outcome.placed.len();
            }
        }
        if let Some(group) = self.groups.get_mut(&outcome.group) {
            (group.is_satisfied, group.was_tried) = (true, false);
        }
        self.review(&outcome.group, None);
    }

    /// A round of this group has begun: its members are tried.
    pub fn began(&mut self, group: &GangGroup) {
        if let Some(group) = self.groups.get_mut(group) {
            group.was_tried = true;
        }
    }

    /// The group of a pod and with how many members it was complete, where the pod is one of them.
    pub fn released_with(&self, uid: &Uid) -> Option<(&str, usize)> {
        let (_, gang) = self.gang(uid)?;
        let (_, stage) = gang.members.get(uid).filter(|(_, stage)| stage.released_with > 0)?;
        Some((gang.group.name(), stage.released_with))
    }

    /// A pod that is scheduled alone is being bound.
    pub fn release_alone(&mut self, uid: &Uid) {
        if let Some((_, stage)) = self.entry_mut(uid) {
            stage.released_with = stage.released_with.min(1);
        }
    }

    /// The members that may be tried since this was asked last, and could not before.
    pub fn take_woken(&mut self) -> Vec<Uid> {
        std::mem::take(&mut self.woken).into_iter().collect()
    }

    /// PreEnqueue: whether a pod may be the next to be tried: for all members that need others, or alone. What is no
    /// member may.
    pub fn admits(&self, uid: &Uid) -> Result<(), NotYet> {
        self.may_be_tried(uid)?;
        let Some((_, gang)) = self.gang(uid) else { return Ok(()) };
        match self.representative_of(uid) {
            Some((_, first)) => Err(NotYet::Represented { by: first.key.clone(), group: gang.group.clone() }),
            None => Ok(()),
        }
    }

    /// The member that is tried for its group in the place of a pod; none where the pod may be tried itself.
    pub fn representative_of(&self, uid: &Uid) -> Option<(&Uid, &Member)> {
        let (_, gang) = self.gang(uid).filter(|_| !self.is_scheduled_alone(uid))?;
        let first = self.representative(self.groups.get(&gang.group)?)?;
        (first.0 != uid).then_some(first)
    }

    /// Whether the gangs of a pod's group have enough members.
    pub fn may_be_tried(&self, uid: &Uid) -> Result<(), NotYet> {
        let Some((id, gang)) = self.gang(uid) else { return Ok(()) };
        let group = self.groups.get(&gang.group).ok_or_else(|| NotYet::Missing(id.clone()))?;
        self.check_complete(group)
    }

    /// The round in which a pod is tried; none for a pod that is scheduled alone.
    pub fn round(&self, uid: &Uid) -> Option<Round> {
        let (_, gang) = self.gang(uid).filter(|_| !self.is_scheduled_alone(uid))?;
        let group = self.groups.get(&gang.group)?;
        let missing = group.ids.iter().map(|id| (id.clone(), self.missing(id, group))).collect();
        let (first, _) = gang.members.get(uid)?;
        let may_join = |member: &Member| member.is_ready && member.scheduler == first.scheduler;
        let mut members: Vec<_> = self.pending(group).filter(|(_, member)| may_join(member)).collect();
        members.sort_by_key(|(other, member)| (*other != uid, order(member)));
        let candidates = members.into_iter().map(|(uid, member)| Candidate {
            uid: uid.clone(),
            key: member.key.clone(),
            gang: member.gang.clone(),
        });
        Some(Round::new(gang.group.clone(), missing, candidates.collect()))
    }

    /// Whether two pods are members of the same group.
    pub fn are_together(&self, one: &Uid, other: &Uid) -> bool {
        let group = |uid: &Uid| self.gang(uid).map(|(_, gang)| &gang.group);
        group(one).is_some_and(|of_one| group(other) == Some(of_one))
    }

    /// Whether a gang declares this group.
    pub fn has_group(&self, group: &GangGroup) -> bool {
        self.groups.contains_key(group)
    }

    /// The gang of a pod.
    pub fn gang_of(&self, uid: &Uid) -> Option<&ObjectKey> {
        self.members.get(uid)
    }

    /// What a gang declares.
    pub fn declaration(&self, id: &ObjectKey) -> Option<&Declaration> {
        self.by_id.get(id)?.declaration.as_ref()
    }

    /// The members of a gang.
    pub fn members(&self, id: &ObjectKey) -> impl Iterator<Item = (&Uid, &Member)> {
        let members = self.by_id.get(id).into_iter().flat_map(|gang| &gang.members);
        members.map(|(uid, (member, _))| (uid, member))
    }

    fn gang(&self, uid: &Uid) -> Option<(&ObjectKey, &Gang)> {
        self.by_id.get_key_value(self.members.get(uid)?)
    }

    /// Whether a pod is tried without others: its group once had enough, or was complete with it.
    pub fn is_scheduled_alone(&self, uid: &Uid) -> bool {
        let Some((_, gang)) = self.gang(uid) else { return true };
        gang.members.get(uid).is_some_and(|(_, stage)| stage.released_with > 0) || self.is_satisfied(gang)
    }

    /// Whether a gang needs nothing any more.
    fn is_satisfied(&self, gang: &Gang) -> bool {
        let is_once = gang.declaration.as_ref().is_some_and(|declared| declared.policy == MatchPolicy::OnceSatisfied);
        is_once && self.groups.get(&gang.group).is_some_and(|group| group.is_satisfied)
    }

    /// How many more members of a gang must be placed.
    fn missing(&self, id: &ObjectKey, group: &Group) -> usize {
        let Some(gang) = self.by_id.get(id) else { return 0 };
        let Some(declared) = &gang.declaration else { return 0 };
        if declared.policy == MatchPolicy::OnceSatisfied && group.is_satisfied || self.is_satisfied(gang) {
            return 0;
        }
        let counts_bound = declared.policy == MatchPolicy::WaitingAndRunning;
        let counts = |(member, stage): &&(Member, Stage)| if member.is_bound { counts_bound } else { stage.is_placed };
        declared.min.saturating_sub(gang.members.values().filter(counts).count())
    }

    /// The members of a group that are nowhere.
    fn pending<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (&'a Uid, &'a Member)> {
        let members = group.ids.iter().filter_map(|id| self.by_id.get(id)).flat_map(|gang| &gang.members);
        let pending = members.filter(|(_, (member, stage))| !member.is_bound && !stage.is_placed);
        pending.map(|(uid, (member, _))| (uid, member))
    }

    /// The member that is tried for all that need others.
    fn representative<'a>(&'a self, group: &'a Group) -> Option<(&'a Uid, &'a Member)> {
        let ready = self.pending(group).filter(|(uid, member)| member.is_ready && !self.is_scheduled_alone(uid));
        ready.min_by_key(|(uid, member)| (Reverse(member.priority), group.last.as_ref() != Some(uid), order(member)))
    }

    fn entry(&self, uid: &Uid) -> Option<&(Member, Stage)> {
        self.by_id.get(self.members.get(uid)?)?.members.get(uid)
    }

    fn entry_mut(&mut self, uid: &Uid) -> Option<&mut (Member, Stage)> {
        self.by_id.get_mut(self.members.get(uid)?)?.members.get_mut(uid)
    }

    /// After a change of a gang, or of this member: it may have joined another group, or be gone, and other members may be tried. It may
    /// be nothing that matters here.
    fn changed(&mut self, id: &ObjectKey, member: Option<&Uid>, is_other: bool) {
        let Some(gang) = self.by_id.get_mut(id) else { return };
        let named = gang.group_of(id);
        let old = std::mem::replace(&mut gang.group, named.clone());
        let has_bound = gang.members.values().any(|(member, _)| member.is_bound);
        let is_gone = gang.members.is_empty() && !gang.has_pod_group;
        if is_gone {
            self.by_id.remove(id);
        } else {
            let Self { groups, naming, .. } = self;
            let group = groups.entry(named.clone()).or_insert_with(|| {
                for id in named.ids().iter() {
                    naming.entry(id.clone()).or_default().insert(named.clone());
                }
                Group { ids: Arc::clone(named.ids()), ..Group::default() }
            });
            group.gangs.insert(id.clone());
            group.is_satisfied |= has_bound;
        }
        if is_gone || old != named {
            self.leave(id, &old);
        }
        for group in self.naming.get(id).cloned().unwrap_or_default() {
            self.review(&group, member);
            let tried = self.groups.get(&group).filter(|group| is_other && group.was_tried);
            let first = tried.and_then(|group| self.representative(group)).map(|(uid, _)| uid.clone());
            self.woken.extend(first);
        }
    }

    /// A gang does not declare this group any more.
    fn leave(&mut self, id: &ObjectKey, name: &GangGroup) {
        let Some(group) = self.groups.get_mut(name) else { return };
        group.gangs.remove(id);
        if group.gangs.is_empty()
            && let Some(group) = self.groups.remove(name)
        {
            for named in group.ids.iter() {
                if let Some(groups) = self.naming.get_mut(named) {
                    groups.remove(name);
                    if groups.is_empty() {
                        self.naming.remove(named);
                    }
                }
            }
        }
    }

    /// Which members of the gangs that declare a group may be tried, after a change of this one.
    fn review(&mut self, name: &GangGroup, member: Option<&Uid>) {
        let Some(group) = self.groups.get(name) else { return };
        let is_complete = self.check_complete(group).is_ok();
        let Some(group) = self.groups.get_mut(name) else { return };
        if group.is_complete != is_complete {
            (group.is_complete, group.last) = (is_complete, member.filter(|_| is_complete).cloned());
        }
        group.was_tried &= is_complete;
        let Some(group) = self.groups.get(name) else { return };
        let admitted = self.admitted(group);
        if let Some(group) = self.groups.get_mut(name) {
            self.woken.extend(admitted.difference(&group.admitted).cloned());
            group.admitted = admitted;
        }
    }

    /// The members of the gangs that declare a group which may be the next to be tried.
    fn admitted(&self, group: &Group) -> BTreeSet<Uid> {
        if !group.is_complete {
            return BTreeSet::new();
        }
        let members = group.gangs.iter().filter_map(|id| self.by_id.get(id)).flat_map(|gang| &gang.members);
        let ready = members.filter(|(_, (member, _))| member.is_ready && !member.is_bound);
        let alone =
            ready.filter(|(uid, (_, stage))| !stage.is_placed && self.is_scheduled_alone(uid)).map(|(uid, _)| uid);
        let first = self.representative(group).filter(|(_, member)| group.gangs.contains(&member.gang));
        first.map(|(uid, _)| uid).into_iter().chain(alone).cloned().collect()
    }
}
