//! What the search for a node has found.

use std::collections::BTreeMap;

use super::{Code, Refusal, Registration, Rejection};
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

/// The nodes that a verdict refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// How many they are.
    pub nodes: u32,
    /// One of them: the first.
    pub example: Row,
}

/// How many nodes were refused, by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals(BTreeMap<Verdict, Alike>);

/// What became of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A node, with its score; so many nodes were as good.
    Node {
        row: Row,
        /// Its score over all plugins.
        score: i64,
        /// Nodes with this score, itself among them.
        ties: u32,
        /// What was looked at.
        searched: Searched,
    },
    /// None, and why: the nodes that each verdict refused.
    Nothing(Refusals),
    /// None, whatever nodes there are, by the word of this plugin.
    Never(u8, Rejection),
}

impl Verdict {
    /// Whether no filter has seen the node.
    fn is_unfiltered(&self) -> bool {
        [Refusal::UNPLANNED, Refusal::NOT_REQUESTED].contains(&self.refusal)
    }
}

impl Refusals {
    /// A node was refused.
    pub fn add(&mut self, verdict: Verdict, row: Row) {
        self.0.entry(verdict).or_insert(Alike { nodes: 0, example: row }).nodes += 1;
    }

    /// A node of one verdict has another.
    pub(crate) fn change(&mut self, old: Verdict, new: Verdict, row: Row) {
        if let Some(alike) = self.0.get_mut(&old) {
            alike.nodes -= 1;
            if alike.nodes == 0 {
                self.0.remove(&old);
            }
            self.add(new, row);
        }
    }

    /// All of them, by verdict.
    pub fn iter(&self) -> impl Iterator<Item = (&Verdict, &Alike)> {
        self.0.iter()
    }

    /// How many nodes each reason holds for, in words.
    pub fn by_reason(&self, plugins: &[Registration], cluster: &Cluster) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::<String, usize>::new();
        for (verdict, Alike { nodes, .. }) in &self.0 {
            for reason in verdict.reasons(plugins, cluster) {
                *counts.entry(reason.text).or_default() += *nodes as usize;
            }
        }
        counts
    }

    /// A node that came near to taking the pod: of those which the removal of pods may help, or of all where there are none, one that
    /// was refused last.
    pub fn nearest(&self) -> Option<Row> {
        let filtered = self.0.iter().filter(|(verdict, _)| !verdict.is_unfiltered());
        filtered.max_by_key(|(verdict, _)| (verdict.refusal.resolvable, verdict.plugin)).map(|(_, alike)| alike.example)
    }

    /// How many nodes the removal of pods may help; `None` when not all of them were filtered.
    pub(crate) fn resolvable(&self) -> Option<usize> {
        let is_unknown = self.0.keys().any(Verdict::is_unfiltered);
        let resolvable = self.0.iter().filter(|(verdict, _)| verdict.refusal.resolvable);
        (!is_unknown).then(|| resolvable.map(|(_, alike)| alike.nodes as usize).sum())
    }

    fn nodes(&self) -> u32 {
        self.0.values().map(|alike| alike.nodes).sum()
    }
}

impl FromIterator<(Verdict, Alike)> for Refusals {
    fn from_iter<I: IntoIterator<Item = (Verdict, Alike)>>(refused: I) -> Self {
        Self(refused.into_iter().collect())
    }
}

impl Found {
    /// What is said about a pod for which no node was found.
    pub fn words(&self, plugins: &[Registration], cluster: &Cluster) -> String {
        if cluster.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let details = match self {
            Self::Node { .. } => return String::new(),
            Self::Never(_, rejection) if rejection.code == Code::Error => return rejection.message(),
            Self::Never(_, rejection) => rejection.message(),
            Self::Nothing(refusals) => return unavailable(&refusals.by_reason(plugins, cluster), cluster.len()),
        };
        if details.is_empty() {
            return unavailable(&BTreeMap::new(), cluster.len());
        }
        format!("0/{} nodes are available: {details}.", cluster.len())
    }

    /// Whether nodes would take the pod that extenders were not called about, and none of those that were accepted does.
    pub fn is_outdated(&self) -> bool {
        let Self::Nothing(refusals) = self else { return false };
        refusals.0.keys().any(|verdict| verdict.refusal == Refusal::NOT_REQUESTED)
    }

    /// The planned or nominated node of the pod: where it takes the pod, no other is filtered.
    pub(crate) fn of_first(row: Row) -> Self {
        Self::Node { row, score: 0, ties: 1, searched: Searched { evaluated: 1, feasible: 1 } }
    }

    /// What was looked at; none where the pod was rejected before.
    pub fn searched(&self) -> Option<Searched> {
        match self {
            Self::Node { searched, .. } => Some(*searched),
            Self::Nothing(refusals) => Some(Searched { evaluated: refusals.nodes(), feasible: 0 }),
            Self::Never(..) => None,
        }
    }
}

/// How many different reasons or places a message names. It is written into the status of a pod with every attempt, and reasons may
/// name their nodes.
const NAMED_MAX: usize = 200;

/// The first texts of a sorted list, and how many more there are.
pub fn abridged(mut texts: Vec<String>, separator: &str) -> String {
    let more = texts.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        texts.truncate(NAMED_MAX);
        texts.push(format!("and {more} more"));
    }
    texts.join(separator)
}

/// What is said of so many nodes where each reason holds for a number of them.
pub fn unavailable(reasons: &BTreeMap<String, usize>, nodes: usize) -> String {
    let mut lines: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    lines.sort();
    let reason_text = if lines.is_empty() { String::new() } else { format!(" {}.", abridged(lines, ", ")) };
    format!("0/{nodes} nodes are available:{reason_text}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Reason, ReasonCode, node::Node};

    #[test]
    fn a_rejection_without_a_reason_says_how_many_nodes_there_are_and_nothing_more() {
        let mut cluster = Cluster::default();
        let said = |reasons: Vec<Reason>, cluster: &Cluster| {
            Found::Never(0, Rejection::unresolvable(reasons)).words(&[], cluster)
        };
        assert_eq!(said(Vec::new(), &cluster), "no nodes available to schedule pods");
        cluster.set_node(Arc::new(Node { name: "n".into(), ..Node::default() }));
        assert_eq!(said(Vec::new(), &cluster), "0/1 nodes are available:");
        let full = ReasonCode::TooManyPods.reason("Too many pods").into();
        assert_eq!(said(full, &cluster), "0/1 nodes are available: Too many pods.");
    }

    #[test]
    fn a_message_names_some_hundred_reasons_and_counts_the_rest() {
        let reasons = |count: usize| (0..count).map(|node| (format!("no victims on n{node:04}"), 1)).collect();
        let said = unavailable(&reasons(5000), 5000);
        assert!(
            said.starts_with("0/5000 nodes are available: 1 no victims on n0000, 1 no victims on n0001, "),
            "{said}"
        );
        assert!(said.ends_with("1 no victims on n0199, and 4800 more.") && said.len() < 8000, "{said}");
        assert!(unavailable(&reasons(200), 200).ends_with("1 no victims on n0199."));
    }
}
