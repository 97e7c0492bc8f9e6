//! Constraints: what a strategy wants a file to say, and why.

use std::{fmt, path::PathBuf, sync::Arc};

use koord_koordlet_system::{CgroupPath, Resource, Value};

/// A file whose value strategies decide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A file of a cgroup.
    Cgroup { cgroup: CgroupPath, resource: Resource },
    /// The line of a disk in a file of a cgroup.
    Disk {
        cgroup: CgroupPath,
        resource: Resource,
        /// `MAJOR:MINOR`.
        disk: Arc<str>,
    },
    /// A file of the system with one value, such as `/proc/sys/vm/min_free_kbytes`; the path is absolute.
    System(PathBuf),
}

/// How far a constraint decides the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The value itself.
    Exactly,
    /// What others want, but not below this.
    AtLeast,
    /// What others want, but not above this. Of CPUs: only these.
    AtMost,
}

/// Who decides where several strategies want different values of one file: the highest wins, and bounds of all hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// What holds where nothing else does: defaults, and what undoes an earlier strategy.
    Default,
    /// What follows from the objects: requests, limits, QoS classes.
    Specified,
    /// What follows from samples: suppression, bursts.
    Measured,
}

/// Why a value is as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The setting that it follows from: a field of NodeSLO, or a label or annotation.
    pub setting: &'static str,
    /// The formula with its numbers: `8000m × 65 % − 2100m (LS pods) − 300m (system) = 2800m`.
    pub formula: Arc<str>,
}

/// What a strategy wants a file to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub target: Target,
    pub bound: Bound,
    pub value: Value,
    pub precedence: Precedence,
    pub reason: Reason,
}

/// Everything that one strategy wants now. It replaces what the strategy wanted before; what it does not name any more is left as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constraints(pub Vec<Constraint>);

impl Reason {
    pub fn new(setting: &'static str, formula: impl Into<Arc<str>>) -> Self {
        Self { setting, formula: formula.into() }
    }
}

impl Constraints {
    /// Adds a file of a cgroup that shall say exactly this.
    pub fn exactly(
        &mut self,
        cgroup: &CgroupPath,
        resource: Resource,
        value: Value,
        precedence: Precedence,
        reason: Reason,
    ) {
        let target = Target::Cgroup { cgroup: cgroup.clone(), resource };
        self.0.push(Constraint { target, bound: Bound::Exactly, value, precedence, reason });
    }
}

impl Target {
    /// The cgroup; `None` of a file of the system.
    pub fn cgroup(&self) -> Option<&CgroupPath> {
        match self {
            Self::Cgroup { cgroup, .. } | Self::Disk { cgroup, .. } => Some(cgroup),
            Self::System(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cgroup { cgroup, resource } => write!(f, "{cgroup}/{resource}"),
            Self::Disk { cgroup, resource, disk } => write!(f, "{cgroup}/{resource} {disk}"),
            Self::System(path) => write!(f, "{}", path.display()),
        }
    }
}
