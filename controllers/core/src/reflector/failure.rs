//! What goes wrong between a watch and its API server.

use std::time::Duration;

/// What went wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status, when the server answered.
    pub code: Option<u16>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// What happened, for a person.
    pub message: String,
}

impl Failure {
    /// Something other than an answer of the server.
    pub fn local(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Why a page of a list was not taken. The list begins anew.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// The answer is not a list.
    #[error("a list that is not JSON: {0}")]
    Malformed(String),
    /// The list does not say of which revision it is.
    #[error("a list without a resourceVersion")]
    NoRevision,
    /// The list is older than what was seen.
    #[error("a list of revision {listed} while {seen} was seen")]
    Stale {
        /// The revision of the list.
        listed: u64,
        /// The newest revision that was seen.
        seen: u64,
    },
}

/// Why a watch has failed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The server reported an error inside the stream.
    #[error("the server ended the watch: {code} {message}")]
    Status {
        /// The HTTP status that the server reported; 0 where it reported none.
        code: u16,
        /// What the server said.
        message: String,
    },
    /// The line is not a watch event: bytes were lost.
    #[error("a broken line in the watch: {0}")]
    Malformed(String),
    /// The server closed a stream of initial events before the last of them.
    #[error("the server closed the watch before the initial events were complete")]
    Incomplete,
    /// The server closed the watch within a second, without an event.
    #[error("the server closed the watch at once")]
    Short,
}
