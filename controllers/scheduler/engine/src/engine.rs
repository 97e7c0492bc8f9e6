//! The cluster, the queue and the profiles together: objects and time go in, attempts come out.
//!
//! It belongs to one task, which changes it and asks it; nothing is locked. A pod for which a node was found is assumed to
//! be there from then on, until it is reported bound or the binding has failed.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, random::Random, uid::Uid};

use crate::{
    cluster::{Cluster, Placed},
    cycle::{Found, Memory, Profile, Verdict},
    event::Event,
    node::Node,
    pod::Pod,
    queue::{Judge, PluginSet, Queue, Return, Timings, Tried},
};

/// A scheduler without hands.
pub struct Engine {
    cluster: Cluster,
    queue: Queue,
    profiles: Profiles,
    memories: Vec<Memory>,
    random: Random,
}

/// One attempt to place a pod.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The pod.
    pub pod: Arc<Pod>,
    /// What was tried before, with this attempt.
    pub tried: Tried,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pod is to be bound to this node, and is assumed to be there.
    Bind {
        /// The node.
        node: Arc<str>,
        /// Its score.
        score: i64,
        /// Nodes that were as good, itself among them.
        ties: u32,
    },
    /// No node takes it.
    Refused {
        /// The reasons, as the event and the condition show them.
        message: String,
    },
}

struct Profiles(Vec<Profile>);

impl Engine {
    /// An engine of these profiles that knows no objects yet.
    pub fn new(profiles: Vec<Profile>, timings: Timings, random: Random) -> Self {
        let memories = profiles.iter().map(|_| Memory::default()).collect();
        Self { cluster: Cluster::default(), queue: Queue::new(timings), profiles: Profiles(profiles), memories, random }
    }

    /// The cluster as it is known, with what is assumed.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The pods that wait.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// A node was added or changed.
    pub fn set_node(&mut self, node: Arc<Node>, now: Moment) {
        let event = match self.cluster.set_node(Arc::clone(&node)) {
            None => Event::NodeAdded(node),
            Some(old) => Event::NodeChanged { old, new: node },
        };
        self.queue.notify(&event, now, &self.profiles);
    }

    /// A node was deleted.
    pub fn remove_node(&mut self, name: &str) {
        self.cluster.remove_node(name);
    }

    /// A pod was added or changed. One that has ended is removed instead.
    pub fn set_pod(&mut self, pod: Arc<Pod>, now: Moment) {
        if let Some(node) = pod.node.clone() {
            self.queue.remove(&pod.uid);
            self.cluster.place(Arc::clone(&pod), &node);
            self.queue.notify(&Event::PodAssigned(pod), now, &self.profiles);
            return;
        }
        // What is assumed is being bound; the change comes again with the node.
        if self.cluster.pod(&pod.uid).is_none() && self.profiles.of(&pod).is_some() {
            self.queue.set(pod, now, &self.profiles);
        }
    }

    /// A pod was deleted, or has ended.
    pub fn remove_pod(&mut self, uid: &Uid, now: Moment) {
        self.queue.remove(uid);
        self.forget(uid, now);
    }

    /// The next attempt; none where no pod is to be tried now.
    pub fn attempt(&mut self, now: Moment) -> Option<Attempt> {
        self.queue.flush(now, &self.profiles);
        loop {
            let (pod, tried) = self.queue.pop(now)?;
            if !pod.deleting
                && let Some(index) = self.profiles.of(&pod)
            {
                return Some(self.attempt_with(index, pod, tried, now));
            }
            self.queue.done(&pod.uid);
        }
    }

    /// Whether there is something to attempt now.
    pub fn has_work(&self, now: Moment) -> bool {
        self.queue.has_work(now)
    }

    /// When there may be something to attempt without a further change; none where only a change helps.
    pub fn wake_at(&self) -> Option<Moment> {
        self.queue.wake_at()
    }

    /// The binding of an attempt has failed: the pod is not on the node, and is tried again after a pause.
    pub fn bind_failed(&mut self, attempt: &Attempt, now: Moment) {
        let Attempt { pod, tried, .. } = attempt;
        // Who has bound or deleted it meanwhile knows better.
        let is_assumed = self.cluster.pod(&pod.uid).is_some_and(|placed| placed.pod.node.is_none());
        if is_assumed {
            self.forget(&pod.uid, now);
            self.queue.give_back(Arc::clone(pod), *tried, Return::Failed, now, &self.profiles);
        }
    }

    /// Forgets all objects, and all that was assumed.
    pub fn clear(&mut self) {
        self.cluster = Cluster::default();
        self.queue.clear();
        self.memories.iter_mut().for_each(Memory::clear);
    }

    fn forget(&mut self, uid: &Uid, now: Moment) {
        if let Some(Placed { pod, .. }) = self.cluster.remove_pod(uid) {
            self.queue.notify(&Event::PodRemoved(pod), now, &self.profiles);
        }
    }

    fn attempt_with(&mut self, index: usize, pod: Arc<Pod>, tried: Tried, now: Moment) -> Attempt {
        let class = self.cluster.class(&pod.template);
        let draw = |ties: u32| u32::try_from(self.random.below(u64::from(ties))).unwrap_or(0);
        let found = self.profiles.0[index].search(&class, &self.cluster, &mut self.memories[index], draw);
        let node = match found {
            Found::Node { row, score, ties } => {
                self.cluster.node(row).map(|node| (Arc::clone(&node.name), score, ties))
            }
            Found::Nothing(_) | Found::Never(_) => None,
        };
        if let Some((node, score, ties)) = node {
            self.cluster.place(Arc::clone(&pod), &node);
            self.queue.done(&pod.uid);
            return Attempt { pod, tried, outcome: Outcome::Bind { node, score, ties } };
        }
        let (refused_by, message) = self.profiles.0[index].words(&found, &self.cluster);
        self.queue.give_back(Arc::clone(&pod), tried, Return::Refused(refused_by), now, &self.profiles);
        Attempt { pod, tried, outcome: Outcome::Refused { message } }
    }
}

impl Profiles {
    /// The profile of a pod.
    fn of(&self, pod: &Pod) -> Option<usize> {
        self.0.iter().position(|profile| profile.scheduler == pod.template.scheduler)
    }
}

impl Judge for Profiles {
    fn gate(&self, pod: &Pod, first: Option<u8>) -> Result<(), u8> {
        let Some(profile) = self.of(pod).map(|index| &self.0[index]) else { return Ok(()) };
        let order = first.into_iter().chain((0..PluginSet::PLUGINS_MAX).filter(|index| Some(*index) != first));
        for index in order.take(profile.plugins.len()) {
            let Some(plugin) = profile.plugins.get(usize::from(index)) else { continue };
            plugin.pre_enqueue(pod).map_err(|_| index)?;
        }
        Ok(())
    }

    fn may_help(&self, pod: &Pod, refused_by: PluginSet, event: &Event) -> bool {
        let Some(profile) = self.of(pod).map(|index| &self.0[index]) else { return false };
        let kinds = event.kinds();
        refused_by.iter().filter_map(|index| profile.plugins.get(usize::from(index))).any(|plugin| {
            matches!(event, Event::Timeout) || plugin.events().meets(kinds) && plugin.may_help(pod, event)
        })
    }
}

impl Profile {
    /// Who refused the pod, and what is said about it.
    fn words(&self, found: &Found, cluster: &Cluster) -> (PluginSet, String) {
        if cluster.is_empty() {
            return (PluginSet::default(), "no nodes available to schedule pods".to_owned());
        }
        let reasons = |verdict: &Verdict| {
            let plugin = self.plugins.get(usize::from(verdict.plugin));
            plugin.map(|plugin| plugin.reasons(&verdict.refusal, cluster)).unwrap_or_default()
        };
        let (refused_by, details) = match found {
            Found::Node { .. } => return (PluginSet::default(), String::new()),
            Found::Never(verdict) => (PluginSet::of(verdict.plugin), reasons(verdict).join(", ")),
            Found::Nothing(refusals) => {
                let (mut refused_by, mut counts) = (PluginSet::default(), BTreeMap::<String, u32>::new());
                for (verdict, nodes) in refusals {
                    refused_by = refused_by.with(verdict.plugin);
                    for reason in reasons(verdict) {
                        *counts.entry(reason).or_default() += nodes;
                    }
                }
                let mut lines: Vec<String> = counts.iter().map(|(reason, nodes)| format!("{nodes} {reason}")).collect();
                lines.sort();
                (refused_by, lines.join(", "))
            }
        };
        (refused_by, format!("0/{} nodes are available: {details}.", cluster.len()))
    }
}
