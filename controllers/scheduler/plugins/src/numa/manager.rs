//! The topology manager: brings together which NUMA nodes several plugins want for a pod (`spec/scheduler.md` 2.12).

#[cfg(test)]
mod tests;

use koord_engine::plugin::{Reason, ReasonCode};
use std::collections::BTreeMap;

use koord_scheduling::NumaMask;

use super::{ledger::Occupation, policy::Policy};

/// NUMA nodes that a pod may have a resource of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The NUMA nodes; none where it does not matter which.
    pub(crate) affinity: Option<NumaMask>,
    /// Whether no narrower set will do.
    pub(crate) is_preferred: bool,
    /// Whether the resource cannot be had at all.
    pub(crate) is_unsatisfied: bool,
    /// How good these NUMA nodes are.
    pub(crate) score: i64,
}

/// The hints of a plugin by resource. Without a list there is no preference; an empty list means that there is not enough.
pub(crate) type Hints = BTreeMap<String, Option<Vec<Hint>>>;

/// A plugin that gives pods something of NUMA nodes, asked about one pod and one node.
pub(crate) trait Provider {
    /// The sets of NUMA nodes that have enough; or the reasons why there is none.
    fn hints(&self) -> Result<Hints, Vec<Reason>>;

    /// Whether the pod gets what it requests of these NUMA nodes; the reasons otherwise.
    fn verify(&self, affinity: Option<NumaMask>) -> Result<(), Vec<Reason>>;
}

/// What the NUMA nodes of a pod must be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// How strictly resources are kept together.
    pub(crate) policy: Policy,
    /// All NUMA nodes of the node.
    pub(crate) all: NumaMask,
    /// How other pods use them, where pods on one NUMA node and pods on several keep apart.
    pub(crate) occupation: Option<Occupation>,
}

/// The NUMA nodes of which the pod gets everything; none where it does not matter which. The reasons where it gets nothing.
pub(crate) fn admit(providers: &[&dyn Provider], rules: Rules) -> Result<Option<NumaMask>, Vec<Reason>> {
    let (mut hints, mut reasons) = (Vec::new(), Vec::new());
    for provider in providers {
        match provider.hints() {
            Ok(of_provider) => hints.push(of_provider),
            Err(words) => reasons.extend(words),
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let affinity = merge(&hints, rules)?;
    providers.iter().try_for_each(|provider| provider.verify(affinity))?;
    Ok(affinity)
}

/// Merges the hints of plugins by the policy.
fn merge(hints: &[Hints], rules: Rules) -> Result<Option<NumaMask>, Vec<Reason>> {
    let lists: Vec<Vec<Hint>> = hints.iter().flat_map(lists).collect();
    let unsatisfied: Vec<Reason> = hints
        .iter()
        .flatten()
        .filter(|(_, list)| list.as_ref().is_some_and(Vec::is_empty))
        .map(|(resource, _)| {
            ReasonCode::NumaUnavailable.says(format!("Unsatisfied NUMA {resource}")).with("resource", resource)
        })
        .collect();
    let is_strict = matches!(rules.policy, Policy::Restricted | Policy::SingleNumaNode);
    if is_strict && !unsatisfied.is_empty() {
        return Err(unsatisfied);
    }
    let aligned = aligned(&lists, rules);
    match rules.policy {
        Policy::None => Ok(None),
        Policy::BestEffort => Ok(Some(aligned.unwrap_or_else(|| narrowest(&lists, rules)))),
        Policy::Restricted => aligned.map(Some).ok_or_else(|| unaligned(hints, " & ")),
        // A single NUMA node is all there are: then it does not matter which.
        Policy::SingleNumaNode => {
            aligned.map(|affinity| (affinity != rules.all).then_some(affinity)).ok_or_else(|| unaligned(hints, ","))
        }
    }
}

/// The hints of a plugin as lists that are not empty.
fn lists(hints: &Hints) -> Vec<Vec<Hint>> {
    let any = Hint { is_preferred: true, ..Hint::default() };
    let impossible = Hint { is_unsatisfied: true, ..Hint::default() };
    if hints.is_empty() {
        return vec![vec![any]];
    }
    let list = |list: &Option<Vec<Hint>>| match list {
        None => vec![any],
        Some(list) if list.is_empty() => vec![impossible],
        Some(list) => list.clone(),
    };
    hints.values().map(list).collect()
}

/// The best NUMA nodes that every list prefers; none where there are no such.
fn aligned(lists: &[Vec<Hint>], rules: Rules) -> Option<NumaMask> {
    let is_possible = |hint: &&Hint| {
        let is_single = hint.affinity.is_none_or(|affinity| affinity.len() == 1);
        hint.is_preferred && (rules.policy != Policy::SingleNumaNode || is_single)
    };
    let lists: Vec<Vec<Hint>> = lists.iter().map(|list| list.iter().filter(is_possible).copied().collect()).collect();
    let first = lists.iter().find(|list| list.iter().any(|hint| hint.affinity.is_some()));
    let affinities = match first {
        Some(first) => first.iter().filter_map(|hint| hint.affinity).collect(),
        None => vec![rules.all],
    };
    let mut best: Option<(NumaMask, i64)> = None;
    for affinity in affinities {
        let of_list = |list: &Vec<Hint>| {
            let equal = list.iter().find(|hint| hint.affinity == Some(affinity)).map(|hint| hint.score);
            equal.or_else(|| list.iter().any(|hint| hint.affinity.is_none()).then_some(0))
        };
        let Some(scores) = lists.iter().map(of_list).collect::<Option<Vec<i64>>>() else { continue };
        let (merged, score) = (affinity.and(rules.all), scores.iter().sum());
        if !merged.is_empty() && rules.keep_apart(merged) && best.is_none_or(|best| is_better((merged, score), best)) {
            best = Some((merged, score));
        }
    }
    best.map(|(affinity, _)| affinity)
}

/// The narrowest NUMA nodes that are in one hint of every list; all of them where not every list has its resource there.
fn narrowest(lists: &[Vec<Hint>], rules: Rules) -> NumaMask {
    /// Combinations that are looked at; three resources on a node of eight NUMA nodes have more.
    const COMBINATIONS_MAX: usize = 1 << 18;
    let mut best = (rules.all, 0);
    let mut is_satisfied = false;
    let mut choice = vec![0; lists.len()];
    for _ in 0..COMBINATIONS_MAX {
        let hints: Vec<&Hint> = lists.iter().zip(&choice).filter_map(|(list, at)| list.get(*at)).collect();
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
fn advance(choice: &mut [usize], lists: &[Vec<Hint>]) -> bool {
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

impl Rules {
    /// Whether a pod on these NUMA nodes keeps apart from pods that use NUMA nodes differently.
    fn keep_apart(&self, affinity: NumaMask) -> bool {
        self.occupation.is_none_or(|Occupation { single, shared }| match affinity.len() {
            1 => affinity.and(shared).is_empty(),
            _ => affinity.iter().all(|node| !single.contains(node) || shared.contains(node)),
        })
    }
}

fn unaligned(hints: &[Hints], separator: &str) -> Vec<Reason> {
    let line = |(resource, list): (&String, &Option<Vec<Hint>>)| {
        let list = list.as_ref().filter(|list| !list.is_empty())?;
        let text = |is_wanted: fn(&&Hint) -> bool| {
            let masks = list.iter().filter(is_wanted).filter_map(|hint| hint.affinity).map(|mask| mask.to_string());
            masks.collect::<Vec<_>>().join(" ")
        };
        Some(format!("{resource} prefer [{}] among [{}]", text(|hint| hint.is_preferred), text(|_| true)))
    };
    let mut lines: Vec<String> = hints.iter().flatten().filter_map(line).collect();
    lines.sort();
    ReasonCode::NumaUnavailable.says(format!("Unaligned NUMA Hint cause {}", lines.join(separator))).into()
}
