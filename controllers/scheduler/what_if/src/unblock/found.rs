//! What was found to unblock a pod, in words and for programs.

use serde_json::{Value, json};

use super::{change::Change, trials::Placement};

/// What would unblock a pod: verified changes, with where the pod would then go.
pub struct Unblock {
    pub(super) changes: Vec<Change>,
    pub(super) placement: Placement,
    /// How many nodes the same holds for, as far as their refusals say.
    pub(super) nodes: usize,
}

/// What would unblock a pod, the smallest changes first.
#[derive(Default)]
pub struct Unblocked {
    pub answers: Vec<Unblock>,
    /// What is said where not everything was tried.
    pub limits: Vec<String>,
}

impl Unblock {
    pub fn to_text(&self) -> String {
        let texts: Vec<&str> = self.changes.iter().map(|change| &*change.text).collect();
        let Placement { node, waits } = &self.placement;
        let waits = if *waits { ", and wait there for its gang," } else { "" };
        let nodes = if self.nodes > 1 { format!(" [{} nodes are alike]", self.nodes) } else { String::new() };
        format!("would be placed on {node}{waits} if {}{nodes}", texts.join(" and "))
    }

    pub fn document(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().map(Change::document).collect();
        let Placement { node, waits } = &self.placement;
        json!({"node": node, "waitsForGang": waits, "alike": self.nodes, "text": self.to_text(), "changes": changes})
    }
}
