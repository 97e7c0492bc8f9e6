//! The verbs of extenders, and the checks of their answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_scheduler_framework::{
    SCORE_MAX,
    extender::{Extender, FailedNode, RATING_MAX, Victims},
};
use thiserror::Error;

use super::protocol::{self, Bound, Filtered, Preempted, Rated};

/// What extenders add to the score of a node lies between this and its negative: sums with the scores of plugins stay in 64 bits.
pub const ADDED_SCORE_MAX: i64 = 1 << 48;

/// Why the answer of an extender cannot be used.
#[derive(Debug, Error)]
pub enum AnswerError {
    #[error("the answer of the extender at {url} cannot be read: {source}")]
    Undecodable { url: String, source: serde_json::Error },
    /// The message of the extender.
    #[error("{0}")]
    Refused(String),
    #[error("extender {url:?} claims a filtered node {node:?} which is not found in the input node list")]
    UnknownNode { url: String, node: String },
    #[error("expected at least one victim pod on node {0:?}")]
    NoVictims(String),
}

/// A verb of the protocol, with what its answers are checked against.
pub trait Verb: Copy {
    /// What an answer amounts to.
    type Answer;

    /// What is appended to the URL of the extender.
    fn path(extender: &Extender) -> &str;

    /// Reads and checks the body of an answer.
    ///
    /// # Errors
    ///
    /// The answer is none of the protocol, contradicts the request, or is an error itself.
    fn check(&self, extender: &Extender, body: &[u8]) -> Result<Self::Answer, AnswerError>;
}

/// Filters nodes.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
    /// The nodes that extenders were called about: this one may say why they failed.
    pub requested: &'a BTreeSet<Arc<str>>,
    /// Those that are left for it: it may accept them.
    pub left: &'a [Arc<str>],
    /// Whether it knows all nodes, so that it answers with names.
    pub knows_objects: bool,
}

/// Rates nodes.
#[derive(Clone, Copy, Debug)]
pub struct Prioritize;

/// Chooses victims of preemption.
#[derive(Clone, Copy, Debug)]
pub struct Preempt;

/// Binds a pod.
#[derive(Clone, Copy, Debug)]
pub struct Bind;

impl Verb for Filter<'_> {
    /// The nodes that are accepted, and why others are refused.
    type Answer = (Vec<Arc<str>>, BTreeMap<Arc<str>, FailedNode>);

    fn path(extender: &Extender) -> &str {
        &extender.filter
    }

    fn check(&self, extender: &Extender, body: &[u8]) -> Result<Self::Answer, AnswerError> {
        let (accepted, mut words) =
            read::<Self, Filtered>(extender, body)?.among(self.left, self.knows_objects, extender)?;
        words.retain(|node, _| self.requested.contains(node));
        Ok((accepted, words))
    }
}

impl Verb for Prioritize {
    /// What is added to the score of each node that is named, within [`ADDED_SCORE_MAX`].
    type Answer = BTreeMap<String, i64>;

    fn path(extender: &Extender) -> &str {
        &extender.prioritize
    }

    fn check(&self, extender: &Extender, body: &[u8]) -> Result<Self::Answer, AnswerError> {
        let Rated(scores) = read::<Self, Rated>(extender, body)?;
        let mut added = BTreeMap::new();
        for (node, score) in scores {
            let scaled = score.saturating_mul(extender.weight).saturating_mul(SCORE_MAX / RATING_MAX);
            let sum = added.entry(node).or_insert(0);
            *sum = plus(*sum, scaled);
        }
        Ok(added)
    }
}

impl Verb for Preempt {
    type Answer = Victims;

    fn path(extender: &Extender) -> &str {
        &extender.preempt
    }

    fn check(&self, extender: &Extender, body: &[u8]) -> Result<Self::Answer, AnswerError> {
        read::<Self, Preempted>(extender, body)?.checked(extender.is_ignorable)
    }
}

impl Verb for Bind {
    type Answer = ();

    fn path(extender: &Extender) -> &str {
        &extender.bind
    }

    fn check(&self, extender: &Extender, body: &[u8]) -> Result<Self::Answer, AnswerError> {
        let Bound { error } = read::<Self, Bound>(extender, body)?;
        if error.is_empty() { Ok(()) } else { Err(AnswerError::Refused(error)) }
    }
}

/// The URL of a verb.
pub(super) fn url<V: Verb>(extender: &Extender) -> String {
    format!("{}/{}", extender.url.trim_end_matches('/'), V::path(extender))
}

/// The sum of what is added to a score.
pub(super) fn plus(one: i64, other: i64) -> i64 {
    one.saturating_add(other).clamp(-ADDED_SCORE_MAX, ADDED_SCORE_MAX)
}

fn read<V: Verb, T: protocol::Result>(extender: &Extender, body: &[u8]) -> Result<T, AnswerError> {
    T::read(body).map_err(|source| AnswerError::Undecodable { url: url::<V>(extender), source })
}
