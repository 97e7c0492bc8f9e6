//! What came of the last attempts: a compact verdict of each, until newer ones push it out.
//!
//! A verdict is kept as the plugins gave it, with a reference to its plugin and a few numbers; the messages are made when someone
//! asks. Attempts that placed a pod and those that did not have a ring each, so that the many of one kind do not push out the
//! few of the other.

use std::{collections::VecDeque, mem::size_of, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{Operands, Profile, Reason, Verdict, cluster::Cluster, pod::Pod};

use super::{Attempt, Outcome};

/// Attempts that a ring keeps.
const ATTEMPTS_MAX: usize = 8192;
/// What they may take in memory.
const BYTES_MAX: usize = 2 << 20;

/// Nodes, or all of them, that a plugin refused for the same reasons.
#[derive(Clone, Debug)]
pub struct NodeClass {
    pub plugin: &'static str,
    /// How many nodes they are; none where the plugin refused the pod as a whole.
    pub nodes: Option<u32>,
    /// One of them.
    pub example: Option<Arc<str>>,
    /// How old the plugin's measures of that node were.
    pub input_age: Option<Duration>,
    /// What the plugin knew of the refusal of that node.
    pub(super) details: Operands,
    pub(super) why: Why,
}

/// The reasons of a refusal.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// As the plugin gave it.
    Verdict(Verdict),
    /// In words.
    Reasons(Vec<Reason>),
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time of day.
    pub time: Timestamp,
    pub pod: ObjectKey,
    pub uid: Uid,
    /// The scheduler name of its profile.
    pub scheduler: Arc<str>,
    /// Which attempt of the pod it was.
    pub attempt: u32,
    /// What came of it.
    pub ending: Ending,
    /// Its place among all attempts.
    number: u64,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The pod is bound to this node.
    Bound {
        node: Arc<str>,
        score: i64,
        /// Nodes that were as good, itself among them.
        ties: u32,
    },
    /// The pod waits on this node before it is bound.
    Waiting { node: Arc<str> },
    /// Another program has given the pod this node.
    Elsewhere { node: Arc<str> },
    /// The pod has no node.
    Refused {
        /// Who refused it.
        by: Arc<[NodeClass]>,
        /// Whether something is wrong that has to do with neither the pod nor the cluster.
        is_error: bool,
        /// The nominated node.
        nominated: Option<Arc<str>>,
        /// How many pods are evicted there.
        victims: usize,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    placed: Ring,
    refused: Ring,
    noted: u64,
}

#[derive(Clone, Debug, Default)]
struct Ring {
    records: VecDeque<Record>,
    bytes: usize,
}

// === impl NodeClass ===

impl NodeClass {
    /// The reasons, in words, with what was known of the example. `profile` is the one of the pod.
    pub fn reasons(&self, profile: Option<&Profile>, cluster: &Cluster) -> Vec<Reason> {
        let reasons = match &self.why {
            Why::Verdict(verdict) => profile.map(|profile| profile.reasons(verdict, cluster)).unwrap_or_default(),
            Why::Reasons(reasons) => reasons.clone(),
        };
        Reason::all_with_further(reasons, &self.details)
    }

    fn bytes(&self) -> usize {
        let words = match &self.why {
            Why::Verdict(_) => 0,
            Why::Reasons(reasons) => reasons.iter().map(|reason| size_of::<Reason>() + reason.text.len()).sum(),
        };
        let details: usize = self.details.iter().map(|operand| size_of_val(operand) + operand.1.len()).sum();
        size_of::<Self>() + words + details
    }
}

// === impl Record ===

impl Record {
    /// About how much memory it takes. Names of nodes and profiles are shared.
    fn bytes(&self) -> usize {
        let by = match &self.ending {
            Ending::Bound { .. } | Ending::Waiting { .. } | Ending::Elsewhere { .. } => 0,
            Ending::Refused { by, .. } => by.iter().map(NodeClass::bytes).sum(),
        };
        size_of::<Self>() + self.pod.as_str().len() + by
    }

    fn is_refusal(&self) -> bool {
        matches!(self.ending, Ending::Refused { .. })
    }
}

// === impl Ring ===

impl Ring {
    fn push(&mut self, record: Record) {
        self.bytes += record.bytes();
        self.records.push_back(record);
        while self.records.len() > ATTEMPTS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= oldest.bytes();
        }
    }
}

// === impl Verdicts ===

impl Verdicts {
    /// Keeps what came of an attempt.
    pub(super) fn note(&mut self, attempt: &Attempt, time: Timestamp) {
        let ending = match &attempt.outcome {
            Outcome::Bind { node, score, ties, .. } => {
                Ending::Bound { node: Arc::clone(node), score: *score, ties: *ties }
            }
            Outcome::Waiting { node } => Ending::Waiting { node: Arc::clone(node) },
            Outcome::Refused(refused) => Ending::Refused {
                by: Arc::clone(&refused.by),
                is_error: refused.is_error,
                nominated: refused.nominated.clone(),
                victims: refused.victims.len(),
            },
            Outcome::ExtenderCall { .. } => return,
        };
        self.keep(&attempt.pod, attempt.tried.attempts, ending, time);
    }

    /// Keeps that another program has given a pod its node.
    pub(super) fn note_elsewhere(&mut self, pod: &Pod, node: &Arc<str>, time: Timestamp) {
        self.keep(pod, 0, Ending::Elsewhere { node: Arc::clone(node) }, time);
    }

    fn keep(&mut self, pod: &Pod, attempt: u32, ending: Ending, time: Timestamp) {
        self.noted += 1;
        let record = Record {
            time,
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            scheduler: Arc::clone(&pod.template.scheduler),
            attempt,
            ending,
            number: self.noted,
        };
        if record.is_refusal() { self.refused.push(record) } else { self.placed.push(record) }
    }

    /// The attempts of pods of this name, the newest first.
    pub(super) fn of(&self, pod: &str) -> Vec<&Record> {
        let all = self.placed.records.iter().chain(&self.refused.records);
        let mut found: Vec<&Record> = all.filter(|record| record.pod.as_str() == pod).collect();
        found.sort_by_key(|record| std::cmp::Reverse(record.number));
        found
    }

    /// Makes words of everything, before the cluster forgets what numbers mean.
    pub(super) fn spell_out<'p>(&mut self, profile: impl Fn(&str) -> Option<&'p Profile>, cluster: &Cluster) {
        for record in &mut self.refused.records {
            let profile = profile(&record.scheduler);
            if let Ending::Refused { by, .. } = &mut record.ending {
                let spelt = by
                    .iter()
                    .map(|class| NodeClass { why: Why::Reasons(class.reasons(profile, cluster)), ..class.clone() });
                *by = spelt.collect();
            }
        }
        let records = std::mem::take(&mut self.refused).records;
        for record in records {
            self.refused.push(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_core::clock::Moment;
    use koord_scheduler_framework::ReasonCode;

    use super::*;
    use crate::{engine::Refused, queue::Tried};

    fn attempt(name: &str, number: u32, outcome: Outcome) -> Attempt {
        let pod = Pod { key: ObjectKey::new("ns", name), uid: Uid::from(name), ..Pod::default() };
        let tried = Tried { attempts: number, ..Tried::default() };
        Attempt { pod: Arc::new(pod), tried, began: Moment::default(), has_waited: false, searched: None, outcome }
    }

    fn refused(text: &str) -> Outcome {
        let why = Why::Reasons(ReasonCode::PluginSpecific.reason(text).into());
        let class =
            NodeClass { plugin: "P", nodes: Some(1), example: None, input_age: None, details: Operands::new(), why };
        Outcome::Refused(Refused { by: Arc::from([class]), ..Refused::default() })
    }

    fn bound(node: &str) -> Outcome {
        Outcome::Waiting { node: node.into() }
    }

    #[test]
    fn the_newest_attempt_of_a_pod_comes_first() {
        let mut verdicts = Verdicts::default();
        for (number, outcome) in [(1, refused("no")), (2, bound("n1")), (3, refused("again"))] {
            verdicts.note(&attempt("a", number, outcome), Timestamp::UNIX_EPOCH);
            verdicts.note(&attempt("b", number, refused("other")), Timestamp::UNIX_EPOCH);
        }
        let numbers: Vec<u32> = verdicts.of("ns/a").iter().map(|record| record.attempt).collect();
        assert_eq!((numbers, verdicts.of("ns/c").len()), (vec![3, 2, 1], 0));
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many_or_they_are_too_large() {
        let mut verdicts = Verdicts::default();
        verdicts.note(&attempt("a", 1, refused("no")), Timestamp::UNIX_EPOCH);
        for number in 0..2 * u32::try_from(ATTEMPTS_MAX).unwrap() {
            verdicts.note(&attempt("b", number, bound("n1")), Timestamp::UNIX_EPOCH);
        }
        assert!(verdicts.placed.records.len() <= ATTEMPTS_MAX && verdicts.placed.bytes <= BYTES_MAX);
        assert!(verdicts.placed.records.len() > ATTEMPTS_MAX / 2, "{}", verdicts.placed.records.len());
        assert_eq!(verdicts.of("ns/a").len(), 1, "placements push out no refusal");
        let long = "x".repeat(BYTES_MAX / 3);
        for number in 0..9 {
            verdicts.note(&attempt("c", number, refused(&long)), Timestamp::UNIX_EPOCH);
        }
        let kept: Vec<u32> = verdicts.of("ns/c").iter().map(|record| record.attempt).collect();
        assert_eq!((kept, verdicts.of("ns/a").len()), (vec![8, 7], 0));
        verdicts.note(&attempt("d", 1, refused(&"x".repeat(BYTES_MAX))), Timestamp::UNIX_EPOCH);
        assert_eq!((verdicts.refused.records.len(), verdicts.refused.bytes), (0, 0), "one that does not fit at all");
    }
}
