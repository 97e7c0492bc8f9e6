//! What evictions lead to.

use std::sync::Arc;

use crate::refusal::Refusal;

/// What an eviction would lead to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// What comes instead of the pod; `None` where the scheduler was not asked.
    pub successor: Option<Successor>,
    /// Why the eviction is not worth it; `None` where it is.
    pub objection: Option<Refusal>,
}

/// What comes instead of a pod that is evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Successor {
    /// Its workload makes another pod, which gets this node.
    On(Arc<str>),
    /// Its workload makes another pod, which gets the node of the evicted one.
    ComesBack(Arc<str>),
    /// Its workload makes another pod, which no node takes.
    Pending(String),
    /// Nothing makes another pod.
    None,
    /// It cannot be determined, for this reason.
    Unknown(&'static str),
}

/// What a profile makes of objections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planning {
    /// Nothing is foreseen.
    #[default]
    Off,
    /// Objections are part of the plan, and change nothing.
    Report,
    /// A pod whose eviction is not worth it stays.
    Enforce,
}

impl Successor {
    /// The node that it gets.
    pub fn node(&self) -> Option<&Arc<str>> {
        match self {
            Self::On(node) | Self::ComesBack(node) => Some(node),
            Self::Pending(_) | Self::None | Self::Unknown(_) => None,
        }
    }
}
