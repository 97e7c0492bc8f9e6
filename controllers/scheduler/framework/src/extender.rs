//! What others are asked while a node is looked for: webhooks that filter and rate nodes, and choose who is evicted.
//!
//! The engine asks nobody itself. An attempt is a function of the cluster and of the answers so far: one that needs a further
//! answer ends with a [`Question`], and is made again when the answer is there. So a decision always holds for the cluster as it
//! is when it is made, however long the answer took.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::uid::Uid;
use thiserror::Error;

use crate::{
    cluster::state::State,
    pod::{Pod, Template},
};

/// The highest rating that an extender gives.
pub const RATING_MAX: i64 = 10;

/// A webhook that takes part in scheduling, as far as decisions depend on it. An empty verb is one that it has not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extender {
    /// The URL to which verbs are appended, by which messages name it.
    pub url: String,
    /// Filters nodes.
    pub filter: String,
    /// Rates nodes.
    pub prioritize: String,
    /// Chooses victims of preemption.
    pub preempt: String,
    /// Binds pods.
    pub bind: String,
    /// What its ratings are multiplied by.
    pub weight: i64,
    /// It is only asked about pods that request one of these resources; about all pods without any.
    pub managed: BTreeSet<String>,
    /// Whether pods are scheduled without it when it does not answer.
    pub is_ignorable: bool,
}

impl Extender {
    /// Whether it is asked about such pods.
    pub fn is_interested(&self, template: &Template) -> bool {
        let requests = |name: &String| template.requests.contains(name) || template.limits.contains(name);
        self.managed.is_empty() || self.managed.iter().any(requests)
    }

    /// Whether it has something to say about nodes.
    pub fn looks_at_nodes(&self) -> bool {
        !self.filter.is_empty() || !self.prioritize.is_empty()
    }
}

/// What is asked about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which of these nodes are right, and how good.
    Nodes(Vec<Arc<str>>),
    /// On which of these nodes room may be made, and who is evicted there.
    Victims(Victims),
}

/// Pods that would be evicted, by node.
pub type Victims = BTreeMap<Arc<str>, NodeVictims>;

/// Pods that would be evicted from one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeVictims {
    /// The pods, most important first.
    pub pods: Vec<Uid>,
    /// How many of them break a budget.
    pub violations: usize,
}

/// An extender call failed. The message is shown in events.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ExtenderError {
    pub message: String,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// About nodes.
    Nodes(Result<Nodes, ExtenderError>),
    /// About victims.
    Victims(Result<Victims, ExtenderError>),
}

/// What was said about nodes. A node that is missing here was refused without a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// All nodes that were asked about.
    pub asked: BTreeSet<Arc<str>>,
    /// Nodes that are right, with what is added to their scores.
    pub accepted: BTreeMap<Arc<str>, i64>,
    /// Nodes that are not, and why.
    pub refused: BTreeMap<Arc<str>, Words>,
}

/// Why a node is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The reason, as events and conditions show it.
    pub reason: String,
    /// Whether the removal of pods may help.
    pub resolvable: bool,
}

/// The answers about the pod that is asked about.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pod: Uid,
    nodes: Option<Result<Arc<Nodes>, ExtenderError>>,
    victims: Option<Result<Victims, ExtenderError>>,
}

impl Answers {
    /// What was said about nodes for this pod.
    pub fn nodes(&self, pod: &Pod) -> Option<Result<&Arc<Nodes>, &ExtenderError>> {
        self.nodes.as_ref().filter(|_| self.pod == pod.uid).map(Result::as_ref)
    }

    /// What was said about victims for this pod.
    pub fn victims(&self, pod: &Pod) -> Option<Result<&Victims, &ExtenderError>> {
        self.victims.as_ref().filter(|_| self.pod == pod.uid).map(Result::as_ref)
    }

    /// Why nodes were refused, in the order of their names.
    pub fn words(&self) -> impl Iterator<Item = &Words> {
        let known = self.nodes.iter().filter_map(|nodes| nodes.as_ref().ok());
        known.flat_map(|nodes| nodes.refused.values())
    }

    /// Keeps an answer about a pod, instead of those about another.
    pub fn set(&mut self, pod: &Uid, answer: Answer) {
        if self.pod != *pod {
            *self = Self { pod: pod.clone(), ..Self::default() };
        }
        match answer {
            Answer::Nodes(nodes) => self.nodes = Some(nodes.map(Arc::new)),
            Answer::Victims(victims) => self.victims = Some(victims),
        }
    }
}

impl State for Answers {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }
}
