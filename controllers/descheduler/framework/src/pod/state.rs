//! What the status of a pod says.

use std::sync::Arc;

/// What the status of a pod says, but for times. Many pods are in the same state.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    pub phase: Phase,
    /// `status.reason`, such as `Evicted`.
    pub reason: Option<Arc<str>>,
    /// `status.qosClass`.
    pub qos: Option<Arc<str>>,
    pub conditions: Box<[Condition]>,
    /// The statuses of containers: first those of init containers, then of containers, then of ephemeral containers.
    pub containers: Box<[ContainerState]>,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// A condition, but for its times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// Such as `Ready`.
    pub kind: Arc<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Arc<str>,
    /// Empty where there is none.
    pub reason: Arc<str>,
}

/// The status of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerState {
    pub kind: ContainerKind,
    pub restarts: i32,
    /// Why it waits; `None` while it does not.
    pub waiting: Option<Arc<str>>,
    /// Why it ended, and its exit code; `None` while it has not ended.
    pub terminated: Option<(Arc<str>, i32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerKind {
    Init,
    Main,
    Ephemeral,
}

impl Phase {
    /// The phase that a status names; no text is `Pending`.
    pub fn named(text: &str) -> Self {
        match text {
            "" | "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}
