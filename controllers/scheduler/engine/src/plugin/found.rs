//! What the search for a node has found.

use std::{collections::BTreeMap, sync::Arc};

use super::{Code, Plugin, Refusal, Rejection};
use crate::{cluster::Cluster, columns::Row};

/// A refusal, with the plugin that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verdict {
    /// The index of the plugin in its profile.
    pub plugin: u8,
    /// Why.
    pub refusal: Refusal,
}

/// How many nodes were looked at, and how many of them take the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Nodes that were looked at.
    pub evaluated: u32,
    /// Nodes that take the pod.
    pub feasible: u32,
}

/// What became of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A node, with its score; so many nodes were as good.
    Node {
        /// The node.
        row: Row,
        /// Its score over all plugins.
        score: i64,
        /// Nodes with this score, itself among them.
        ties: u32,
        /// What was looked at.
        searched: Searched,
    },
    /// None, and why: how many nodes each verdict refused.
    Nothing(BTreeMap<Verdict, u32>),
    /// None, whatever nodes there are, by the word of this plugin.
    Never(u8, Rejection),
}

impl Found {
    /// What is said about a pod for which no node was found.
    pub fn words(&self, plugins: &[Arc<dyn Plugin>], cluster: &Cluster) -> String {
        if cluster.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let details = match self {
            Self::Node { .. } => return String::new(),
            Self::Never(_, Rejection { code: Code::Error, message }) => return message.clone(),
            Self::Never(_, rejection) => rejection.message.clone(),
            Self::Nothing(refusals) => {
                let mut counts = BTreeMap::<String, usize>::new();
                for (verdict, nodes) in refusals {
                    let plugin = plugins.get(usize::from(verdict.plugin));
                    let reasons = plugin.map(|plugin| plugin.reasons(&verdict.refusal, cluster)).unwrap_or_default();
                    for reason in reasons {
                        *counts.entry(reason).or_default() += *nodes as usize;
                    }
                }
                return unavailable(&counts, cluster.len());
            }
        };
        format!("0/{} nodes are available: {details}.", cluster.len())
    }

    /// Whether nodes would take the pod about which nobody was asked, and none of those that were accepted does.
    pub(crate) fn is_outdated(&self) -> bool {
        let Self::Nothing(refusals) = self else { return false };
        refusals.keys().any(|verdict| verdict.refusal == Refusal::UNASKED)
    }

    /// The node that was planned for the pod, or on which room was made for it: where it takes the pod, no other is asked.
    pub(crate) fn of_first(row: Row) -> Self {
        Self::Node { row, score: 0, ties: 1, searched: Searched { evaluated: 1, feasible: 1 } }
    }

    /// What was looked at; none where the pod was rejected before.
    pub(crate) fn searched(&self) -> Option<Searched> {
        match self {
            Self::Node { searched, .. } => Some(*searched),
            Self::Nothing(refusals) => Some(Searched { evaluated: refusals.values().sum(), feasible: 0 }),
            Self::Never(..) => None,
        }
    }
}

/// What is said of so many nodes where each reason holds for a number of them.
pub fn unavailable(reasons: &BTreeMap<String, usize>, nodes: usize) -> String {
    let mut lines: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    lines.sort();
    format!("0/{nodes} nodes are available: {}.", lines.join(", "))
}
