//! What a strategy gives back: data that others carry out.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use koord_koordlet_framework::{Constraints, Reason};

use crate::eviction::EvictionRound;

/// What a strategy wants after a round. What is `None` is as it was after the round before.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Everything that the strategy wants of files with one value.
    pub constraints: Option<Constraints>,
    /// Everything that the strategy wants of groups of resctrl.
    pub groups: Option<Vec<ResctrlGroup>>,
    /// Pods to be evicted in this round, one after the other.
    pub evictions: Option<EvictionRound>,
    /// Texts to be written in this round.
    pub writes: Vec<SystemWrite>,
    /// All series of the strategy.
    pub gauges: Option<Vec<Gauge>>,
    /// Everything that keeps the strategy from its work.
    pub notes: Option<Vec<Note>>,
}

/// What a group of resctrl shall have.
#[derive(Clone, Debug, PartialEq)]
pub struct ResctrlGroup {
    /// The name of its folder, which is made when it is missing.
    pub name: Cow<'static, str>,
    /// Ways of each L3 cache as bits; `None` leaves them.
    pub l3: Option<u64>,
    /// Memory bandwidth in units of the vendor; `None` leaves it.
    pub bandwidth: Option<u64>,
    /// Ids of tasks that are to be added.
    pub tasks: Vec<u32>,
    pub reason: Reason,
}

/// A text that is written to a system file which has no single value: each write changes one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemWrite {
    pub path: PathBuf,
    /// Without a newline at its end.
    pub text: String,
    pub reason: Reason,
}

/// A series of a gauge, without the label of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauge {
    pub name: &'static str,
    pub labels: Vec<(&'static str, Arc<str>)>,
    pub value: f64,
}

/// Why a strategy does not do all that it could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    pub reason: Cow<'static, str>,
    /// What can be done about it; empty where nothing need be.
    pub remedy: &'static str,
}

/// How far a strategy is kept from its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// An input is missing; what was wanted before still is.
    Skipped,
    /// A part cannot be done on this kernel or machine.
    Degraded,
    /// A setting makes no sense and is not followed.
    Invalid,
}

/// Names of gauges.
pub mod gauges {
    /// CPUs that BE pods may use; label `type` is the policy.
    pub const BE_SUPPRESS_CPU_CORES: &str = "koordlet_be_suppress_cpu_cores";
    /// CPUs in use by pods that are not BE.
    pub const BE_SUPPRESS_LS_USED_CPU_CORES: &str = "koordlet_be_suppress_ls_used_cpu_cores";
    /// CPUs in use by BE pods.
    pub const BE_SUPPRESS_BE_USED_CPU_CORES: &str = "koordlet_be_suppress_be_used_cpu_cores";
    /// The burst of a container, in microseconds.
    pub const CONTAINER_SCALED_CFS_BURST_US: &str = "koordlet_container_scaled_cfs_burst_us";
    /// The CFS quota of a container that was scaled in this round, in microseconds.
    pub const CONTAINER_SCALED_CFS_QUOTA_US: &str = "koordlet_container_scaled_cfs_quota_us";
}

impl Outcome {
    /// Nothing has changed.
    pub fn unchanged() -> Self {
        Self::default()
    }

    /// An input is missing.
    pub fn skipped(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { notes: Some(vec![Note::skipped(reason)]), ..Self::default() }
    }
}

impl Note {
    pub fn skipped(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: NoteKind::Skipped, reason: reason.into(), remedy: "" }
    }

    pub fn degraded(reason: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { kind: NoteKind::Degraded, reason: reason.into(), remedy }
    }

    pub fn invalid(reason: impl Into<Cow<'static, str>>, remedy: &'static str) -> Self {
        Self { kind: NoteKind::Invalid, reason: reason.into(), remedy }
    }
}
