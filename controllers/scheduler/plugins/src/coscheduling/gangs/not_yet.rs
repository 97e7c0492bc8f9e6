//! Why members wait for others.

use std::fmt;

use koord_core::key::ObjectKey;

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
