//! Extenders: webhooks that filter and rate nodes, and choose victims of preemption.
//!
//! The engine calls no webhook itself. An attempt is a function of the cluster and of the results so far: one that needs a further
//! result ends with [`ExtenderArgs`], and is made again when the result has come. So a decision always holds for the cluster as it
//! is when it is made, however long the call took.

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
    /// It is called only for pods that request one of these resources; for all pods when this is empty.
    pub managed: BTreeSet<String>,
    /// Whether pods are scheduled without it when a call fails.
    pub is_ignorable: bool,
}

impl Extender {
    /// Whether it is called for pods of a template.
    pub fn is_interested(&self, template: &Template) -> bool {
        let requests = |name: &String| template.requests.contains(name) || template.limits.contains(name);
        self.managed.is_empty() || self.managed.iter().any(requests)
    }

    /// Whether it filters or rates nodes.
    pub fn handles_nodes(&self) -> bool {
        !self.filter.is_empty() || !self.prioritize.is_empty()
    }
}

/// The arguments of a call about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtenderArgs {
    /// Filter and rate these nodes.
    Nodes(Vec<Arc<str>>),
    /// Choose among these candidates of preemption, and among their victims.
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

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtenderResult {
    Nodes(Result<Nodes, ExtenderError>),
    Victims(Result<Victims, ExtenderError>),
}

/// The nodes that extenders accept or refuse. A node that is in none of the last two was refused without a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// All nodes of the call.
    pub requested: BTreeSet<Arc<str>>,
    /// The nodes that are accepted, with what is added to their scores.
    pub accepted: BTreeMap<Arc<str>, i64>,
    pub failed: BTreeMap<Arc<str>, FailedNode>,
}

/// A node that an extender refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedNode {
    /// The reason, as events and conditions show it.
    pub reason: String,
    /// Whether the removal of pods may help.
    pub resolvable: bool,
}

/// The results of the calls about one pod.
#[derive(Clone, Debug, Default)]
pub struct ExtenderResults {
    pod: Uid,
    nodes: Option<Result<Arc<Nodes>, ExtenderError>>,
    victims: Option<Result<Victims, ExtenderError>>,
}

impl ExtenderResults {
    /// The result of filtering and rating nodes for this pod.
    pub fn nodes(&self, pod: &Pod) -> Option<Result<&Arc<Nodes>, &ExtenderError>> {
        self.nodes.as_ref().filter(|_| self.pod == pod.uid).map(Result::as_ref)
    }

    /// The result of choosing victims for this pod.
    pub fn victims(&self, pod: &Pod) -> Option<Result<&Victims, &ExtenderError>> {
        self.victims.as_ref().filter(|_| self.pod == pod.uid).map(Result::as_ref)
    }

    /// The refused nodes, in the order of their names.
    pub fn failed_nodes(&self) -> impl Iterator<Item = &FailedNode> {
        let known = self.nodes.iter().filter_map(|nodes| nodes.as_ref().ok());
        known.flat_map(|nodes| nodes.failed.values())
    }

    /// Stores a result for a pod, instead of those for another.
    pub fn set(&mut self, pod: &Uid, result: ExtenderResult) {
        if self.pod != *pod {
            *self = Self { pod: pod.clone(), ..Self::default() };
        }
        match result {
            ExtenderResult::Nodes(nodes) => self.nodes = Some(nodes.map(Arc::new)),
            ExtenderResult::Victims(victims) => self.victims = Some(victims),
        }
    }
}

impl State for ExtenderResults {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }
}
