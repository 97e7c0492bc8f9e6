//! Errors of a reconcile: they say whose fault it is and what to do about it.

use std::time::Duration;

/// Whose fault an error is; a label in metrics and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The API server or the way to it.
    Api,
    /// What a user wrote: an object, a configuration, a permission.
    User,
    /// The node.
    Node,
    /// Ourselves.
    Bug,
}

impl Fault {
    /// The fault as a label.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::Api => "api",
            Fault::User => "user",
            Fault::Node => "node",
            Fault::Bug => "bug",
        }
    }
}

/// When to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After the growing delay of the key.
    Backoff,
    /// After a certain time.
    After(Duration),
    /// Not before something changes.
    Never,
}

impl Retry {
    /// The time that somebody asked for.
    pub fn wished(self) -> Option<Duration> {
        match self {
            Retry::After(delay) => Some(delay),
            Retry::Backoff | Retry::Never => None,
        }
    }
}

/// Why a key could not be reconciled.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReconcileError {
    /// When to try again.
    pub retry: Retry,
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened, and what a person can do about it.
    pub message: String,
    /// Whether the rest of the plan is aborted, because no other write would succeed now: the server does not answer, or
    /// is overloaded.
    pub aborts_plan: bool,
}

impl ReconcileError {
    /// An error that is tried again with growing delay.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { retry: Retry::Backoff, fault, message: message.into(), aborts_plan: false }
    }

    /// An error that nothing but a change can fix.
    pub fn never(fault: Fault, message: impl Into<String>) -> Self {
        Self { retry: Retry::Never, fault, message: message.into(), aborts_plan: false }
    }

    /// The same error, tried again after a certain time.
    pub fn after(self, delay: Duration) -> Self {
        Self { retry: Retry::After(delay), ..self }
    }

    /// The same error, which aborts the rest of the plan.
    pub fn aborting_plan(self) -> Self {
        Self { aborts_plan: true, ..self }
    }
}
