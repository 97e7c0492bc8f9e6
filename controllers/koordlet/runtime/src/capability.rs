//! Capabilities: which features work on this node, and what stops the others.

use std::{collections::BTreeMap, fmt};

/// How a feature fares on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Active,
    /// It is switched off.
    Off,
    /// It does not work, or only in part.
    Degraded {
        /// What is missing, with the path where there is one.
        reason: String,
        /// What makes it work.
        remedy: String,
    },
}

/// The features of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeMap<&'static str, State>);

impl Capabilities {
    /// Sets the state of a feature; returns whether it is another one than before.
    pub fn set(&mut self, feature: &'static str, state: State) -> bool {
        if self.0.get(feature) == Some(&state) {
            return false;
        }
        match &state {
            State::Degraded { reason, remedy } => {
                tracing::warn!(feature, reason, remedy, "a feature does not work here");
            }
            State::Active => tracing::info!(feature, "a feature is active"),
            State::Off => {}
        }
        self.0.insert(feature, state);
        true
    }

    /// That a feature works.
    pub fn active(&mut self, feature: &'static str) -> bool {
        self.set(feature, State::Active)
    }

    /// That a feature does not work.
    pub fn degraded(&mut self, feature: &'static str, reason: impl fmt::Display, remedy: &str) -> bool {
        self.set(feature, State::Degraded { reason: reason.to_string(), remedy: remedy.to_owned() })
    }

    /// All features in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &State)> {
        self.0.iter().map(|(feature, state)| (*feature, state))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Off => f.write_str("off"),
            Self::Degraded { reason, .. } => write!(f, "degraded: {reason}"),
        }
    }
}
