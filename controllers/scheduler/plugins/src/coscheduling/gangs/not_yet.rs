//! Why members wait for others.

use std::fmt;

use koord_core::key::ObjectKey;
use koord_engine::plugin::{Reason, ReasonCode};

use super::{Gangs, Group, Member, Stage};

/// Why a pod may not be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// A gang of the group is not known.
    Missing(ObjectKey),
    /// Nothing legal declares a gang of the group.
    Undeclared(ObjectKey),
    /// A gang of the group has too few members.
    Incomplete {
        /// The gang.
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
        /// The group.
        group: String,
    },
}

impl Gangs {
    /// Whether each gang of the group has enough members.
    pub(super) fn check_complete(&self, group: &Group) -> Result<(), NotYet> {
        for id in &group.ids {
            let gang = self.by_id.get(id).ok_or_else(|| NotYet::Missing(id.clone()))?;
            let declared = gang.declaration.as_ref().ok_or_else(|| NotYet::Undeclared(id.clone()))?;
            let counts = |(member, stage): &&(Member, Stage)| member.is_ready || member.is_bound || stage.is_placed;
            let has = gang.members.values().filter(counts).count();
            if has < declared.min && !self.is_satisfied(gang) {
                return Err(NotYet::Incomplete { gang: id.clone(), has, needs: declared.min });
            }
        }
        Ok(())
    }
}

impl NotYet {
    /// Its code and words.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Missing(gang) | Self::Undeclared(gang) => {
                ReasonCode::GangUndeclared.says(self.to_string()).with("gang", gang)
            }
            Self::Incomplete { gang, has, needs } => {
                let reason = ReasonCode::GangWaitingMembers.says(self.to_string()).with("gang", gang);
                reason.with("have", has).with("need", needs)
            }
            Self::Represented { by, group } => {
                ReasonCode::GangRepresented.says(self.to_string()).with("by", by).with("group", group)
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
                write!(f, "representative pod {by} of gangGroupID {group} already exists")
            }
        }
    }
}
