//! Why members wait for others.

use std::fmt;

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{Reason, ReasonCode};

use super::{GangGroup, Gangs, Group, Member, Stage};

/// Why a pod may not be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// A gang of the group is not known.
    Missing(ObjectKey),
    /// Nothing legal declares a gang of the group.
    Undeclared(ObjectKey),
    /// A gang of the group has too few members.
    Incomplete {
        gang: ObjectKey,
        /// The members that it has.
        has: usize,
        /// The members that it needs.
        needs: usize,
    },
    /// Another member is tried for the group.
    Represented {
        /// That member.
        by: ObjectKey,
        group: GangGroup,
    },
}

impl Gangs {
    /// Whether each gang of the group has enough members.
    pub(super) fn check_complete(&self, group: &Group) -> Result<(), NotYet> {
        group.ids.iter().try_for_each(|id| self.check(id))
    }

    /// Whether a gang has enough members.
    fn check(&self, id: &ObjectKey) -> Result<(), NotYet> {
        let gang = self.by_id.get(id).ok_or_else(|| NotYet::Missing(id.clone()))?;
        let declared = gang.declaration.as_ref().ok_or_else(|| NotYet::Undeclared(id.clone()))?;
        let counts = |(member, stage): &&(Member, Stage)| member.is_ready || member.is_bound || stage.is_placed;
        let has = gang.members.values().filter(counts).count();
        if has < declared.min && !self.is_satisfied(gang) {
            return Err(NotYet::Incomplete { gang: id.clone(), has, needs: declared.min });
        }
        Ok(())
    }

    /// The same as [`Self::may_be_tried`], in the words of the original: they go into the condition of a pod that is tried.
    pub fn basic_check(&self, uid: &Uid) -> Result<(), Reason> {
        self.may_be_tried(uid).map_err(|why| {
            let reason = why.reason();
            match self.basic_words(uid) {
                Some(text) => Reason { text, ..reason },
                None => reason,
            }
        })
    }

    /// All that the gangs of a pod's group lack.
    fn basic_words(&self, uid: &Uid) -> Option<String> {
        let (id, gang) = self.gang(uid)?;
        let (Member { key: pod, .. }, _) = gang.members.get(uid)?;
        if gang.declaration.is_none() {
            return Some(format!("gang has not init, gangName: {id}, podName: {pod}"));
        }
        let all: Vec<&str> = self.groups.get(&gang.group)?.ids.iter().map(ObjectKey::as_str).collect();
        let (mut missing, mut undeclared, mut incomplete) = (Vec::new(), Vec::new(), Vec::new());
        for named in self.groups.get(&gang.group)?.ids.iter() {
            match self.check(named) {
                Ok(()) => {}
                Err(NotYet::Missing(_)) => missing.push(named.as_str()),
                Err(NotYet::Undeclared(_)) => undeclared.push(named.as_str()),
                // QUIRK: all gangs of the group are named, whichever of them lack members
                // (`a_member_that_is_tried_too_early_is_refused_in_the_words_of_the_original`).
                Err(NotYet::Incomplete { .. } | NotYet::Represented { .. }) => incomplete.clone_from(&all),
            }
        }
        let lacks =
            [(missing, "doesn't exists"), (undeclared, "has not init"), (incomplete, "child pod not collect enough")];
        let lacks = lacks.into_iter().filter(|(gangs, _)| !gangs.is_empty());
        let lacks: Vec<String> =
            lacks.map(|(gangs, what)| format!("memberGangs [{}] {what}", gangs.join(" "))).collect();
        let (group, lacks) = (all.join(" "), lacks.join(", "));
        Some(format!("gangGroup [{group}] basic check: {lacks}, current gang: {id}, podName: {pod}"))
    }
}

impl NotYet {
    /// Its code and words.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Missing(gang) | Self::Undeclared(gang) => {
                ReasonCode::GangUndeclared.reason(self.to_string()).with("gang", gang)
            }
            Self::Incomplete { gang, has, needs } => {
                let reason = ReasonCode::GangWaitingMembers.reason(self.to_string()).with("gang", gang);
                reason.with("have", has).with("need", needs)
            }
            Self::Represented { by, group } => {
                ReasonCode::GangRepresented.reason(self.to_string()).with("by", by).with("group", group.name())
            }
        }
    }
}

impl fmt::Display for NotYet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(gang) => write!(f, "gang {gang} does not exist"),
            Self::Undeclared(gang) => {
                write!(f, "gang {gang} has not init: it has no PodGroup, and no pod with a legal min-available")
            }
            Self::Incomplete { gang, has, needs } => write!(f, "gang {gang} has {has} of {needs} members"),
            Self::Represented { by, group } => {
                write!(f, "representative pod {by} of gangGroupID {} already exists", group.name())
            }
        }
    }
}
