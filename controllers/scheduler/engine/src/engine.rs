//! The cluster, the queue and the profiles together: objects and time go in, attempts come out.
//!
//! It belongs to one task, which changes it and asks it; nothing is locked. A pod for which a node was found is assumed to
//! be there from then on, until it is reported bound or the binding has failed.

#[cfg(test)]
mod tests;

mod audit;
mod current_attempt;
mod diagnosis;
mod event_handlers;
mod extender_calls;
mod failure_handler;
mod jobs;
mod latency;
mod overallocation;
mod preemption;
mod queueing_hints;
mod schedule_one;
mod status_writer;
mod verdicts;
mod waiting_pods;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, write::Write};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Patch, Profile, Searched, cluster::Cluster, cycle::CandidateCache, event::Event, extender::ExtenderArgs, pod::Pod,
    policy::Policy,
};

use self::verdicts::Verdicts;
pub use self::{
    current_attempt::CurrentAttempt,
    diagnosis::{Decision, Why},
    jobs::Ended,
    latency::{AttemptPart, PartLatency},
    overallocation::{Overallocation, Whose},
    preemption::PreemptionOutcome,
    verdicts::{Ending, NodeClass, Record},
};
use self::{
    extender_calls::ExtenderCallQueue, jobs::Jobs, latency::Latencies, overallocation::Overallocations,
    queueing_hints::PluginHints, waiting_pods::Waitlist,
};
use crate::queue::{Queue, Return, Timings, Tried};

/// Which objects plugins read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Kinds, with the names of the plugins that read them.
    pub kinds: BTreeMap<ResourceKind, BTreeSet<&'static str>>,
    /// The names of the only objects that are read of a kind.
    pub only: BTreeMap<ResourceKind, BTreeSet<String>>,
}

/// A scheduler without hands.
pub struct Engine {
    cluster: Cluster,
    queue: Queue,
    profiles: Vec<Arc<Profile>>,
    candidate_caches: Vec<CandidateCache>,
    waiting: Waitlist,
    /// Attempts that the orders of plugins have ended.
    ready: VecDeque<Attempt>,
    random: Random,
    /// Something has changed since plugins were asked for orders.
    has_changed: bool,
    /// Jobs that are under way, and those that have ended.
    jobs: Jobs,
    verdicts: Verdicts,
    extender_calls: ExtenderCallQueue,
    latencies: Latencies,
    /// Pods that the last attempt passed over.
    skipped: Vec<Arc<Pod>>,
    /// What is allocated more than once.
    overallocations: Overallocations,
    /// Shows the attempt that is being made.
    current_attempt: CurrentAttempt,
}

/// One attempt to place a pod.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub pod: Arc<Pod>,
    /// What was tried before, with this attempt.
    pub tried: Tried,
    /// When it began.
    pub began: Moment,
    /// Whether the pod was a waiting pod before.
    pub has_waited: bool,
    /// How many nodes were looked at; `None` where the pod was rejected before, or has waited.
    pub searched: Option<Searched>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod is to be bound to this node, and is assumed to be there.
    Bind {
        node: Arc<str>,
        score: i64,
        /// Nodes that were as good, itself among them.
        ties: u32,
        /// What is written into the pod before it is bound.
        patch: Patch,
        /// What is written instead of a binding, with the name of the plugin that wants it.
        instead: Option<(&'static str, Write)>,
    },
    /// The pod is reserved, and Permit holds its binding back.
    Waiting { node: Arc<str> },
    /// No node takes it.
    Refused(Refused),
    /// Extenders are to be called first: [`Engine::extender_call_finished`] goes on.
    ExtenderCall {
        /// The number of the call.
        number: u64,
        args: ExtenderArgs,
    },
}

/// Why no node takes a pod, and what is done about it.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// The reasons, as the event and the condition show them.
    pub message: String,
    /// Whether something is wrong that has to do with neither the pod nor the cluster.
    pub is_error: bool,
    /// The node that the pod is nominated to.
    pub nominated: Option<Arc<str>>,
    /// The victims that are evicted there.
    pub victims: Vec<Arc<Pod>>,
    /// The preemptor, where that is not this pod alone.
    pub preemptor: Option<Arc<str>>,
    /// Waiting pods among the victims, which are rejected.
    pub withdrawn: Vec<Arc<Pod>>,
    /// Whether PostFilter ran.
    pub ran_post_filters: bool,
    /// What came of preemption.
    pub preemption: PreemptionOutcome,
    /// Who refused it, by alike nodes.
    pub by: Arc<[NodeClass]>,
}

impl Engine {
    /// An engine of these profiles that knows no objects yet.
    pub fn new(profiles: Vec<Profile>, timings: Timings, random: Random) -> Self {
        let candidate_caches = profiles.iter().map(|_| CandidateCache::default()).collect();
        let profiles: Vec<Arc<Profile>> = profiles.into_iter().map(Arc::new).collect();
        let cluster = empty(&profiles, Policy::default());
        let (waiting, ready) = (Waitlist::default(), VecDeque::new());
        let queue = Queue::new(timings);
        let (jobs, extender_calls, verdicts) = (Jobs::default(), ExtenderCallQueue::default(), Verdicts::default());
        let (has_changed, latencies, skipped) = (false, Latencies::default(), Vec::new());
        Self {
            cluster,
            queue,
            profiles,
            candidate_caches,
            waiting,
            ready,
            random,
            has_changed,
            jobs,
            verdicts,
            extender_calls,
            latencies,
            skipped,
            overallocations: Overallocations::default(),
            current_attempt: CurrentAttempt::default(),
        }
    }

    /// The same under this policy, before anything is known.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.cluster.set_policy(policy);
        self
    }

    /// The cluster as it is known, with what is assumed.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The pods that wait.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The last attempts of pods of this name, the newest first.
    pub fn verdicts(&self, pod: &ObjectKey) -> Vec<&Record> {
        self.verdicts.of(pod.as_str())
    }

    /// Whether this pod was to be bound to this node, as far as that is kept.
    pub fn has_bound(&self, pod: &Pod, node: &str) -> bool {
        let is_it = |ending: &Ending| matches!(ending, Ending::Bound { node: bound, .. } if **bound == *node);
        self.verdicts.of(pod.key.as_str()).iter().any(|record| record.uid == pod.uid && is_it(&record.ending))
    }

    /// Keeps among the last attempts that another program has given a pod its node.
    pub fn note_elsewhere(&mut self, pod: &Pod, node: &Arc<str>) {
        let time = self.cluster.time();
        self.verdicts.note_elsewhere(pod, node, time);
    }

    /// The profile of this scheduler name.
    pub fn profile(&self, scheduler: &str) -> Option<&Profile> {
        self.profiles().find(|profile| &*profile.scheduler == scheduler)
    }

    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter().map(|profile| &**profile)
    }

    /// The kinds of objects beside nodes and pods that plugins read, with the names of these plugins.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        for plugin in self.profiles.iter().flat_map(|profile| &profile.plugins) {
            for kind in plugin.reads {
                reads.kinds.entry(*kind).or_default().insert(plugin.name());
            }
            for (kind, name) in &plugin.reads_only {
                reads.only.entry(*kind).or_default().insert(name.clone());
            }
        }
        reads
    }

    /// The time of day has come so far.
    pub fn tick(&mut self, now: Timestamp) {
        self.cluster.tick(now);
        self.has_changed = true;
    }

    /// When [`Engine::tick`] matters next; none while only changes do.
    pub fn tick_at(&self) -> Option<Timestamp> {
        self.cluster.wake_at()
    }

    /// Forgets all objects, and all that was assumed.
    pub fn clear(&mut self) {
        self.spell_out();
        self.cluster = empty(&self.profiles, self.cluster.policy().clone());
        self.queue.clear();
        self.waiting = Waitlist::default();
        self.ready.clear();
        self.skipped.clear();
        self.extender_calls.clear();
        self.candidate_caches.iter_mut().for_each(CandidateCache::clear);
        self.jobs = Jobs::default();
        self.overallocations = Overallocations::default();
        // A panic has ended the attempt.
        self.current_attempt.set(None);
    }

    /// Shows the attempt that is being made, to other threads too.
    pub fn current_attempt(&self) -> CurrentAttempt {
        self.current_attempt.clone()
    }

    /// Makes words of what is kept of attempts, before numbers mean something else.
    fn spell_out(&mut self) {
        let profiles = &self.profiles;
        let profile =
            |name: &str| profiles.iter().find(|profile| &*profile.scheduler == name).map(|profile| &**profile);
        self.verdicts.spell_out(profile, &self.cluster);
    }

    /// The profile of a pod.
    fn profile_of(&self, pod: &Pod) -> Option<usize> {
        self.profiles.iter().position(|profile| profile.scheduler == pod.template.scheduler)
    }

    fn notify(&mut self, event: &Event, now: Moment) {
        self.has_changed = true;
        let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.notify(event, now, &hints);
    }

    fn give_back(&mut self, pod: &Arc<Pod>, tried: Tried, why: Return, now: Moment) {
        let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.give_back(Arc::clone(pod), tried, why, now, &hints);
    }
}

/// A cluster with the states of these plugins, and nothing in it.
fn empty(profiles: &[Arc<Profile>], policy: Policy) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.schedule(profiles.iter().map(|profile| Arc::clone(&profile.scheduler)).collect(), policy);
    let plugins = || profiles.iter().flat_map(|profile| &profile.plugins);
    plugins().flat_map(|plugin| &plugin.topology_keys).for_each(|key| cluster.pin_topology(key));
    plugins().filter_map(|plugin| plugin.state.as_ref()).for_each(|point| cluster.add_state(point.state()));
    cluster
}
