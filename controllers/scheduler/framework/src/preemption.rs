//! The dry run of preemption: which victims would make a node take a pod, tried on the cluster and undone.

mod evaluator;
mod lower_priority;

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use koord_core::uid::Uid;
use thiserror::Error;

pub use self::{
    evaluator::{Evaluator, awaits_victims, is_unresolvable, no_candidate, nominate, not_eligible, refuse_reserve_pod},
    lower_priority::LowerPriority,
};
pub use crate::{Attempted, Candidate};
use crate::{
    Code, Found, Profile, Request, Verdict,
    cluster::{Cluster, Placed, Trial},
    columns::Row,
    cycle::Prepared,
    pod::Pod,
    unavailable,
};

/// The preemptor would be rejected whatever its victims. The message is shown in events.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct NotAdmitted {
    pub message: String,
}

impl NotAdmitted {
    /// Shows a refusal as the events about the pod do.
    pub fn new(refusal: impl fmt::Display) -> Self {
        Self { message: refusal.to_string() }
    }
}

/// Who may be evicted for a pod.
pub trait Rules {
    /// Whether this pod may be a victim. It is not called for pods that must not be evicted ([`Cluster::is_spared`]).
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool;

    /// Whether there may be a pod in the cluster that may go. Where there is none, [`Rules::no_victims`] says the same of every node.
    fn has_victims(&self, _cluster: &Cluster) -> bool {
        true
    }

    /// Which of these pods, most important first, must rather stay: their eviction breaks a budget.
    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid>;

    /// What is said of a node without a pod that may go.
    fn no_victims(&self, node: &str) -> String;

    /// Whether the pod passes PreFilter while its possible victims are removed. Filters run afterwards.
    ///
    /// # Errors
    ///
    /// A plugin rejects the pod.
    fn admits(&self, request: &Request<'_>, profile: &Profile, cluster: &Cluster) -> Result<(), NotAdmitted> {
        profile.admit(request, cluster).map_or(Ok(()), |(_, rejection)| Err(NotAdmitted::new(rejection.message())))
    }
}

/// Why there is no candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCandidate {
    /// No removal of pods helps. The words are those of an event.
    Helpless(String),
    /// The pod fits on nodes without any removal, so that something else holds it back. The words name these nodes.
    NoVictim(String),
}

/// Why a node is no candidate.
enum Unfit {
    Reasons(Vec<String>),
    NoVictim,
}

/// How many candidates are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    /// In percent of the nodes that may become one.
    pub percent: u32,
    /// At least so many.
    pub at_least: usize,
}

impl Width {
    fn of(self, nodes: usize) -> usize {
        (nodes * self.percent as usize / 100).max(self.at_least).min(nodes)
    }
}

impl Attempted<'_> {
    /// Nodes with the pods that would have to go for this pod; or why there is none.
    pub fn candidates(
        &mut self,
        request: &Request<'_>,
        rules: &dyn Rules,
        width: Width,
    ) -> Result<Vec<Candidate>, NoCandidate> {
        if let Some(nodes) = self.resolvable_nodes()
            && (nodes == 0 || !rules.has_victims(self.cluster))
        {
            self.offset(nodes);
            let reasons = (nodes > 0).then(|| (rules.no_victims(""), nodes)).into_iter().collect();
            return Err(self.helpless(reasons, nodes));
        }
        let mut prepared = self.profile.prepare(request, self.cluster);
        let rows = self.resolvable(request.pod, &mut prepared);
        let offset = self.offset(rows.len());
        let candidates_max = width.of(rows.len());
        let (mut candidates, mut reasons) = (Vec::new(), BTreeMap::<String, usize>::new());
        let (mut tried, mut without_victim) = (0, BTreeSet::new());
        for row in rows.iter().cycle().skip(offset).take(rows.len()) {
            tried += 1;
            match self.victims_on(*row, request, &mut prepared, rules) {
                Ok(candidate) => candidates.push(candidate),
                Err(Unfit::Reasons(words)) => words.into_iter().for_each(|word| *reasons.entry(word).or_default() += 1),
                Err(Unfit::NoVictim) => _ = without_victim.insert(*row),
            }
            if candidates.len() >= candidates_max && candidates.iter().any(|candidate| candidate.violations == 0) {
                break;
            }
        }
        if !candidates.is_empty() {
            return Ok(candidates);
        }
        if !without_victim.is_empty() {
            return Err(NoCandidate::NoVictim(self.expected_victims(&without_victim)));
        }
        Err(self.helpless(reasons, tried))
    }

    /// At which of so many nodes is begun.
    fn offset(&mut self, nodes: usize) -> usize {
        match u32::try_from(nodes) {
            Ok(0) | Err(_) => 0,
            Ok(nodes) => (self.draw)(nodes) as usize,
        }
    }

    /// There is no candidate, for these reasons of so many nodes that were tried.
    fn helpless(&self, mut reasons: BTreeMap<String, usize>, tried: usize) -> NoCandidate {
        let untried = self.cluster.len() - tried;
        if untried > 0 {
            *reasons.entry("Preemption is not helpful for scheduling".to_owned()).or_default() += untried;
        }
        NoCandidate::Helpless(unavailable(&reasons, self.cluster.len()))
    }

    /// How many nodes the removal of pods may help, where the search knows it: it has filtered every node, and there are no nominated pods.
    fn resolvable_nodes(&self) -> Option<usize> {
        let Found::Nothing(refusals) = self.found else { return None };
        refusals.resolvable().filter(|_| self.cluster.nominated_rows().is_empty())
    }

    /// The words about nodes where a victim was expected and none found.
    fn expected_victims(&self, rows: &BTreeSet<Row>) -> String {
        let words = rows.iter().filter_map(|row| self.cluster.node(*row)).map(|node| {
            let name = &*node.name;
            format!("expected at least one victim pod on node {name:?}")
        });
        let words: Vec<String> = words.collect();
        if words.len() == 1 { words.concat() } else { format!("[{}]", words.join(", ")) }
    }

    /// The rows where the removal of pods may help.
    pub fn resolvable(&mut self, pod: &Pod, prepared: &mut Prepared) -> Vec<Row> {
        match self.found {
            Found::Node { .. } => return Vec::new(),
            Found::Never(_, rejection) if rejection.code != Code::Unschedulable => return Vec::new(),
            Found::Never(..) => return self.cluster.rows().map(|(row, _)| row).collect(),
            Found::Nothing(_) => {}
        }
        let rows: Vec<Row> = self.cluster.rows().map(|(row, _)| row).collect();
        let nominated = self.cluster.nominated_rows();
        let mut is_resolvable = |row: &Row| {
            let verdict = if nominated.contains(row) {
                let beside = self.profile.nominated_before(pod, *row, self.cluster);
                prepared.filter_beside(&mut self.cluster.trial(), *row, &beside)
            } else {
                prepared.filter(self.cluster, *row)
            };
            verdict.err().is_none_or(|refused| refused.refusal.resolvable)
        };
        rows.into_iter().filter(|row| is_resolvable(row)).collect()
    }

    /// The fewest and least important pods of a node without which the pod fits there.
    fn victims_on(
        &mut self,
        row: Row,
        request: &Request<'_>,
        prepared: &mut Prepared,
        rules: &dyn Rules,
    ) -> Result<Candidate, Unfit> {
        let profile = self.profile;
        // A reserve pod is no pod that could be evicted.
        let pods = self.cluster.pods_on(row).filter(|placed| !placed.pod.is_reservation());
        let may_go = pods.filter(|placed| !self.cluster.is_spared(placed) && rules.may_evict(placed, self.cluster));
        let mut evictable: Vec<Placed> = may_go.cloned().collect();
        evictable.sort_by(|one, other| by_importance(&one.pod, &other.pod));
        if evictable.is_empty() {
            let node = self.cluster.node(row).map(|node| Arc::clone(&node.name)).unwrap_or_default();
            return Err(Unfit::Reasons(vec![rules.no_victims(&node)]));
        }
        let protected = rules.protected(&evictable, self.cluster);
        let beside = profile.nominated_before(request.pod, row, self.cluster);
        let mut attempt = Dry { trial: self.cluster.trial(), prepared, rules };
        for placed in &evictable {
            attempt.remove(placed);
        }
        let result = attempt.fits(request, profile, row, &beside).map(|()| {
            let (reprieved_first, others): (Vec<_>, Vec<_>) =
                evictable.iter().partition(|placed| protected.contains(&placed.pod.uid));
            let mut victims = Vec::new();
            for placed in reprieved_first.into_iter().chain(others) {
                attempt.add(placed);
                if attempt.fits(request, profile, row, &beside).is_err() {
                    attempt.remove(placed);
                    victims.push(placed.clone());
                }
            }
            victims.sort_by(|one, other| by_importance(&one.pod, &other.pod));
            let violations = victims.iter().filter(|placed| protected.contains(&placed.pod.uid)).count();
            Candidate { row, victims, violations }
        });
        attempt.end(&evictable);
        match result {
            // A pod that fits without an eviction is held back by something that evictions do not change.
            Ok(candidate) if candidate.victims.is_empty() => Err(Unfit::NoVictim),
            result => result.map_err(Unfit::Reasons),
        }
    }
}

/// Evictions that are tried, with the filters that follow them.
struct Dry<'c, 'p> {
    trial: Trial<'c>,
    prepared: &'p mut Prepared,
    rules: &'p dyn Rules,
}

impl Dry<'_, '_> {
    fn remove(&mut self, placed: &Placed) {
        self.trial.remove(&placed.pod.uid);
        self.prepared.changed(&self.trial, placed, false);
    }

    fn add(&mut self, placed: &Placed) {
        self.trial.place(Arc::clone(&placed.pod), placed.row, placed.holds.clone());
        self.prepared.changed(&self.trial, placed, true);
    }

    fn fits(
        &mut self,
        request: &Request<'_>,
        profile: &Profile,
        row: Row,
        beside: &[Arc<Pod>],
    ) -> Result<(), Vec<String>> {
        self.rules.admits(request, profile, &self.trial).map_err(|error| vec![error.message])?;
        let words = |verdict: Verdict, trial: &Trial<'_>| {
            profile.reasons(&verdict, trial).into_iter().map(|reason| reason.text).collect()
        };
        let refused = self.prepared.filter_beside(&mut self.trial, row, beside);
        refused.map_err(|verdict| words(verdict, &self.trial))
    }

    /// Brings the filters back to the cluster as it is.
    fn end(mut self, evictable: &[Placed]) {
        for placed in evictable {
            if self.trial.pod(&placed.pod.uid).is_none() {
                self.add(placed);
            }
        }
    }
}

/// The order of importance: the highest priority first, then who runs for longest, then who came first: that was created first, or has
/// the first name of those that were created in the same second. QUIRK: of pods that no node has started yet, the last one that came is
/// the most important (`of_victims_that_no_node_has_started_the_last_one_stays`).
pub fn by_importance(one: &Pod, other: &Pod) -> Ordering {
    let rank = |pod: &Pod| (Reverse(pod.template.priority), pod.started.unwrap_or(i64::MAX));
    rank(one).cmp(&rank(other)).then_with(|| {
        let order = (one.created, &one.key, &one.uid).cmp(&(other.created, &other.key, &other.uid));
        if one.started.is_none() { order.reverse() } else { order }
    })
}

/// The candidate that does the least harm: fewest broken budgets, then the lowest priority of the most important victim, the
/// lowest sum of priorities, the fewest victims, and the victims of that priority that run for the shortest time.
pub fn least_harm(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by_key(|candidate| {
        let priority = |placed: &Placed| i64::from(placed.pod.template.priority);
        let highest = candidate.victims.iter().map(priority).max().unwrap_or(i64::MIN);
        // Moved above zero, so that few victims of a negative priority are less than many.
        let sum: i64 = candidate.victims.iter().map(|placed| priority(placed) + (1 << 31)).sum();
        let most_important = candidate.victims.iter().filter(|placed| priority(placed) == highest);
        let earliest = most_important.map(|placed| placed.pod.started.unwrap_or(i64::MAX)).min();
        (candidate.violations, highest, sum, candidate.victims.len(), Reverse(earliest))
    })
}

#[cfg(test)]
mod tests {
    use koord_core::key::ObjectKey;

    use super::*;

    fn order(started: Option<i64>) -> String {
        let pod = |name: &str, created: i64| {
            let key = ObjectKey::new("ns", name);
            Pod { uid: Uid::from(&*(9 - created).to_string()), key, created, started, ..Pod::default() }
        };
        let mut pods = [pod("b", 1), pod("c", 2), pod("a", 1)];
        pods.sort_by(by_importance);
        pods.map(|pod| pod.key.name().to_owned()).join(" ")
    }

    #[test]
    fn of_victims_that_no_node_has_started_the_last_one_stays() {
        assert_eq!(order(None), "c b a", "a came first, and goes first");
        assert_eq!(order(Some(7)), "a b c", "of those that run for as long the first one stays");
    }
}
