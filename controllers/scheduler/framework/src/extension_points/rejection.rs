//! How final a rejection of a pod as a whole is, and why.

use super::Reason;

/// How final a rejection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The removal of pods may help.
    Unschedulable,
    /// The removal of pods does not help.
    Unresolvable,
    /// Something is wrong that has to do with neither the pod nor the cluster.
    Error,
}

/// Why a pod is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// How final it is.
    pub code: Code,
    pub reasons: Vec<Reason>,
}

impl Rejection {
    /// The removal of pods may help.
    pub fn unschedulable(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Unschedulable, reasons: reasons.into() }
    }

    /// The removal of pods does not help.
    pub fn unresolvable(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Unresolvable, reasons: reasons.into() }
    }

    /// Something is wrong that has to do with neither the pod nor the cluster.
    pub fn error(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Error, reasons: reasons.into() }
    }

    pub fn message(&self) -> String {
        Reason::joined(&self.reasons)
    }
}
