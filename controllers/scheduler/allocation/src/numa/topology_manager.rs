//! The topology manager: brings together which NUMA nodes several plugins want for a pod (`spec/scheduler.md` 2.12).

#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

use koord_scheduler_framework::{Reason, ReasonCode};
use koord_scheduling::NumaMask;
use smallvec::SmallVec;

use crate::numa::{ledger::Occupation, policy::Policy};

/// NUMA nodes that a pod may have a resource of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopologyHint {
    /// The NUMA nodes; none where it does not matter which.
    pub affinity: Option<NumaMask>,
    /// Whether no narrower set will do.
    pub is_preferred: bool,
    /// Whether the resource cannot be had at all.
    pub is_unsatisfied: bool,
    /// How good these NUMA nodes are.
    pub score: i64,
}

/// The hints of plugins, a list for each resource. Those of a plugin come in the order of the resources' names.
#[derive(Clone, Debug, Default)]
pub struct TopologyHints<'a> {
    /// Of all lists, one after the other.
    hints: SmallVec<[TopologyHint; 8]>,
    /// The resources, and where their lists are. A list that is empty means that there is not enough.
    lists: SmallVec<[(Cow<'a, str>, Range<usize>); 4]>,
}

/// A plugin that gives pods something of NUMA nodes, asked about one pod and one node.
pub trait Provider {
    /// Adds the sets of at most so many NUMA nodes that have enough; or gives the reasons why there is none.
    fn hints<'a>(&'a self, nodes_max: u32, hints: &mut TopologyHints<'a>) -> Result<(), Vec<Reason>>;

    /// Whether the pod gets what it requests of these NUMA nodes; the reasons otherwise.
    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>>;
}

/// What the NUMA nodes of a pod must be like.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How strictly resources are kept together.
    pub policy: Policy,
    /// All NUMA nodes of the node.
    pub all: NumaMask,
    /// How other pods use them, where pods on one NUMA node and pods on several keep apart.
    pub occupation: Option<Occupation>,
}

/// The NUMA nodes of which the pod gets everything; none where it does not matter which. The reasons where it gets nothing.
pub fn admit(providers: &[&dyn Provider], rules: Rules) -> Result<Option<NumaMask>, Vec<Reason>> {
    // Of what must be on a single NUMA node, wider sets matter for the reasons alone.
    let single = (rules.policy == Policy::SingleNumaNode).then(|| merged(providers, 1, rules).ok()).flatten();
    let affinity = single.map_or_else(|| merged(providers, u32::MAX, rules), Ok)?;
    providers.iter().try_for_each(|provider| provider.verify(affinity))?;
    Ok(affinity)
}

/// The NUMA nodes that follow from the hints of all plugins; the reasons of those that have none, one of each plugin.
fn merged(providers: &[&dyn Provider], nodes_max: u32, rules: Rules) -> Result<Option<NumaMask>, Vec<Reason>> {
    let (mut hints, mut reasons) = (TopologyHints::default(), Vec::new());
    for provider in providers {
        if let Err(words) = provider.hints(nodes_max, &mut hints) {
            reasons.extend(as_one(words));
        }
    }
    if reasons.is_empty() { merge(&hints, rules) } else { Err(reasons) }
}

/// The reasons of a plugin in one line, so that nodes are counted by all of them together.
fn as_one(reasons: Vec<Reason>) -> Option<Reason> {
    let text = Reason::joined(&reasons);
    reasons.into_iter().next().map(|first| Reason { text, ..first })
}

/// Merges the hints of plugins by the policy.
fn merge(hints: &TopologyHints<'_>, rules: Rules) -> Result<Option<NumaMask>, Vec<Reason>> {
    let is_strict = matches!(rules.policy, Policy::Restricted | Policy::SingleNumaNode);
    if is_strict && let Some(unsatisfied) = hints.unsatisfied() {
        return Err(unsatisfied);
    }
    let lists = hints.lists();
    let aligned = aligned(&lists, rules);
    match rules.policy {
        Policy::None => Ok(None),
        Policy::BestEffort => Ok(Some(aligned.unwrap_or_else(|| narrowest(&lists, rules)))),
        Policy::Restricted => aligned.map(Some).ok_or_else(|| hints.unaligned(" & ")),
        // A single NUMA node is all there are: then it does not matter which.
        Policy::SingleNumaNode => {
            aligned.map(|affinity| (affinity != rules.all).then_some(affinity)).ok_or_else(|| hints.unaligned(","))
        }
    }
}

/// The best NUMA nodes that every list prefers; none where there are no such.
fn aligned(lists: &[&[TopologyHint]], rules: Rules) -> Option<NumaMask> {
    let first = lists.iter().find(|list| rules.possible(list).any(|hint| hint.affinity.is_some()));
    let affinities = first.into_iter().flat_map(|list| rules.possible(list)).filter_map(|hint| hint.affinity);
    let mut best: Option<(NumaMask, i64)> = None;
    for affinity in affinities.chain(first.is_none().then_some(rules.all)) {
        let of_list = |list: &&[TopologyHint]| {
            let equal = rules.possible(list).find(|hint| hint.affinity == Some(affinity)).map(|hint| hint.score);
            equal.or_else(|| rules.possible(list).any(|hint| hint.affinity.is_none()).then_some(0))
        };
        let Some(score) = lists.iter().map(of_list).sum::<Option<i64>>() else { continue };
        let merged = affinity.and(rules.all);
        if !merged.is_empty() && rules.keep_apart(merged) && best.is_none_or(|best| is_better((merged, score), best)) {
            best = Some((merged, score));
        }
    }
    best.map(|(affinity, _)| affinity)
}

/// The narrowest NUMA nodes that are in one hint of every list; all of them where not every list has its resource there.
fn narrowest(lists: &[&[TopologyHint]], rules: Rules) -> NumaMask {
    /// Combinations that are looked at; three resources on a node of eight NUMA nodes have more.
    const COMBINATIONS_MAX: usize = 1 << 18;
    let mut best = (rules.all, 0);
    let mut is_satisfied = false;
    let mut choice = vec![0; lists.len()];
    for _ in 0..COMBINATIONS_MAX {
        let hints: Vec<&TopologyHint> = lists.iter().zip(&choice).filter_map(|(list, at)| list.get(*at)).collect();
        let affinities = || hints.iter().filter_map(|hint| hint.affinity);
        let merged = affinities().fold(rules.all, NumaMask::and);
        let score = hints.iter().filter(|hint| hint.affinity == Some(merged)).map(|hint| hint.score).sum();
        if !merged.is_empty() && is_better((merged, score), best) {
            best = (merged, score);
            let widest = affinities().map(NumaMask::len).max();
            is_satisfied =
                hints.iter().all(|hint| !hint.is_unsatisfied) && widest.is_none_or(|bits| bits == merged.len());
        }
        if !advance(&mut choice, lists) {
            break;
        }
    }
    if is_satisfied { best.0 } else { rules.all }
}

/// Goes to the next combination: the last list changes first.
fn advance(choice: &mut [usize], lists: &[&[TopologyHint]]) -> bool {
    for (at, list) in choice.iter_mut().zip(lists).rev() {
        *at += 1;
        if *at < list.len() {
            return true;
        }
        *at = 0;
    }
    false
}

/// Whether NUMA nodes with a score replace those that were met before.
///
/// QUIRK: of equally many NUMA nodes those with lower numbers are better whatever their score
/// (spec/scheduler.md 2.12; `lower_numbers_come_before_scores`).
fn is_better((new, score): (NumaMask, i64), (old, old_score): (NumaMask, i64)) -> bool {
    new.cmp_narrowness(old).is_lt() || new.len() == old.len() && score > old_score
}

// === impl TopologyHints ===

impl<'a> TopologyHints<'a> {
    /// Adds the hints of a resource.
    pub fn add(&mut self, resource: impl Into<Cow<'a, str>>, hints: impl IntoIterator<Item = TopologyHint>) {
        let start = self.hints.len();
        self.hints.extend(hints);
        self.lists.push((resource.into(), start..self.hints.len()));
    }

    fn named(&self) -> impl Iterator<Item = (&str, &[TopologyHint])> {
        self.lists.iter().map(|(resource, list)| (&**resource, &self.hints[list.clone()]))
    }

    /// The hints of all resources, none of which is empty.
    fn lists(&self) -> SmallVec<[&[TopologyHint]; 4]> {
        const IMPOSSIBLE: &[TopologyHint] =
            &[TopologyHint { affinity: None, is_preferred: false, is_unsatisfied: true, score: 0 }];
        self.named().map(|(_, list)| if list.is_empty() { IMPOSSIBLE } else { list }).collect()
    }

    /// Reasons for the resources of which there is not enough; none where there are no such.
    fn unsatisfied(&self) -> Option<Vec<Reason>> {
        let short = self.named().filter(|(_, list)| list.is_empty()).map(|(resource, _)| resource);
        let reason = |resource: &str| {
            ReasonCode::NumaUnavailable.reason(format!("Unsatisfied NUMA {resource}")).with("resource", resource)
        };
        let reasons: Vec<Reason> = short.map(reason).collect();
        (!reasons.is_empty()).then_some(reasons)
    }

    fn unaligned(&self, separator: &str) -> Vec<Reason> {
        let line = |(resource, list): (&str, &[TopologyHint])| {
            let text = |is_listed: fn(&&TopologyHint) -> bool| {
                let masks = list.iter().filter(is_listed).filter_map(|hint| hint.affinity).map(|mask| mask.to_string());
                masks.collect::<Vec<_>>().join(" ")
            };
            format!("{resource} prefer [{}] among [{}]", text(|hint| hint.is_preferred), text(|_| true))
        };
        let mut lines: Vec<String> = self.named().filter(|(_, list)| !list.is_empty()).map(line).collect();
        lines.sort();
        ReasonCode::NumaUnavailable.reason(format!("Unaligned NUMA Hint cause {}", lines.join(separator))).into()
    }
}

// === impl Rules ===

impl Rules {
    /// The hints of a list that a pod may follow together with others.
    fn possible<'h>(&self, list: &'h [TopologyHint]) -> impl Iterator<Item = &'h TopologyHint> + use<'h> {
        let needs_single = self.policy == Policy::SingleNumaNode;
        let is_single = |hint: &TopologyHint| hint.affinity.is_none_or(|affinity| affinity.len() == 1);
        list.iter().filter(move |hint| hint.is_preferred && (!needs_single || is_single(hint)))
    }

    /// Whether a pod on these NUMA nodes keeps apart from pods that use NUMA nodes differently.
    pub fn keep_apart(&self, affinity: NumaMask) -> bool {
        self.occupation.is_none_or(|Occupation { single, shared }| match affinity.len() {
            1 => affinity.and(shared).is_empty(),
            _ => affinity.iter().all(|node| !single.contains(node) || shared.contains(node)),
        })
    }
}
