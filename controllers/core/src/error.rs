//! Errors of a reconcile: they say whose fault it is and what to do about it. And any error as one line.

use std::{error::Error, time::Duration};

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

/// A permission that the API server asks for and the program does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPermission {
    /// What it is, as `patch databases.db.example.com/status`.
    pub permission: String,
    /// The error without what helps.
    pub refusal: String,
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
    /// Whether the cache was behind the API server, which refused the write for that. The next decision knows better, so
    /// nobody is to blame.
    pub stale: bool,
    /// The permission that is missing; none where it is about something else.
    pub lacks: Option<MissingPermission>,
}

impl ReconcileError {
    /// An error that is tried again with growing delay.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { retry: Retry::Backoff, fault, message: message.into(), aborts_plan: false, stale: false, lacks: None }
    }

    /// An error that nothing but a change can fix.
    pub fn never(fault: Fault, message: impl Into<String>) -> Self {
        Self { retry: Retry::Never, ..Self::new(fault, message) }
    }

    /// The same error, tried again after a certain time.
    pub fn after(self, delay: Duration) -> Self {
        Self { retry: Retry::After(delay), ..self }
    }

    /// The same error, because of a cache that was behind.
    pub fn of_stale_cache(self) -> Self {
        Self { stale: true, ..self }
    }

    /// The same error, for want of a permission.
    pub fn lacking(self, missing: MissingPermission) -> Self {
        Self { lacks: Some(missing), ..self }
    }

    /// The same error, which aborts the rest of the plan.
    pub fn aborting_plan(self) -> Self {
        Self { aborts_plan: true, ..self }
    }
}

/// An error with its causes as one line, for logs and for the line in which a program reports why it ends. Many errors have
/// their cause in their own text; what is there already is not repeated.
///
/// ```
/// let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
/// assert_eq!(koord_core::error::in_one_line(&refused), "connection refused");
/// ```
pub fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn layers(texts: &[&'static str]) -> Option<Box<Layer>> {
        texts.split_first().map(|(text, rest)| Box::new(Layer { text, source: layers(rest) }))
    }

    #[test]
    fn causes_follow_unless_they_are_repeated() {
        let error = layers(&["cannot list nodes: no answer", "no answer", "connection refused"]).unwrap();
        assert_eq!(in_one_line(&*error), "cannot list nodes: no answer: connection refused");
    }
}
