//! The cluster, the queue and the profiles together: objects and time go in, attempts come out.
//!
//! It belongs to one task, which changes it and asks it; nothing is locked. A pod for which a node was found is assumed to
//! be there from then on, until it is reported bound or the binding has failed.

#[cfg(test)]
mod tests;

mod asking;
mod attempting;
mod excess;
mod jobs;
mod judge;
mod laps;
mod room;
mod told;
mod verdicts;
mod waiting;
mod why;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid, write::Write};
use koord_resource::controller::ResourceKind;

use self::verdicts::Verdicts;
use self::{asking::Asking, excess::Excesses, jobs::Jobs, judge::Judged, laps::Laps, waiting::Waitlist};
pub use self::{
    excess::{Excess, Whose},
    jobs::Ended,
    laps::{Lap, Part},
    room::Room,
    verdicts::{Ending, NodeClass, Record},
    why::{Decision, Why},
};
use crate::{
    cluster::{Cluster, Mismatch, Turn},
    columns::Row,
    cycle::{Memory, Profile},
    event::Event,
    extender::Question,
    plugin::{Explanation, Orders, Patch, Prepared, Searched, Upkeep},
    pod::Pod,
    policy::Policy,
    queue::{Queue, Return, Timings, Tried},
};

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
    memories: Vec<Memory>,
    waiting: Waitlist,
    /// Attempts that others brought to an end.
    ready: VecDeque<Attempt>,
    random: Random,
    /// Something has changed since plugins were asked for orders.
    is_unsettled: bool,
    /// Jobs that are under way, and those that have ended.
    jobs: Jobs,
    verdicts: Verdicts,
    asking: Asking,
    laps: Laps,
    /// Pods that the last attempt passed over.
    skipped: Vec<Arc<Pod>>,
    /// What is given to more than may have it.
    excesses: Excesses,
}

/// One attempt to place a pod.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The pod.
    pub pod: Arc<Pod>,
    /// What was tried before, with this attempt.
    pub tried: Tried,
    /// When it began.
    pub began: Moment,
    /// Whether the pod had its place before and was waiting to be bound.
    pub has_waited: bool,
    /// What was looked at; none where the pod was rejected before, or has waited.
    pub searched: Option<Searched>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The pod is to be bound to this node, and is assumed to be there.
    Bind {
        /// The node.
        node: Arc<str>,
        /// Its score.
        score: i64,
        /// Nodes that were as good, itself among them.
        ties: u32,
        /// What is written into the pod before it is bound.
        patch: Patch,
        /// What is written instead of a binding, with the name of the plugin that wants it.
        instead: Option<(&'static str, Write)>,
    },
    /// The pod has its place, but a plugin lets it wait before it is bound.
    Waiting {
        /// The node.
        node: Arc<str>,
    },
    /// No node takes it.
    Refused(Refused),
    /// Somebody is to be asked first: [`Engine::answered`] goes on.
    Asks {
        /// The number of the question.
        number: u64,
        /// The question.
        question: Question,
    },
}

/// Why no node takes a pod, and what is done about it.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// The reasons, as the event and the condition show them.
    pub message: String,
    /// Whether something is wrong that has to do with neither the pod nor the cluster.
    pub is_error: bool,
    /// The node on which room is made.
    pub nominated: Option<Arc<str>>,
    /// The pods that are evicted there.
    pub victims: Vec<Arc<Pod>>,
    /// For whom they are evicted, where that is not this pod alone.
    pub preemptor: Option<Arc<str>>,
    /// The pods that had their place there, were not bound yet, and give it back.
    pub withdrawn: Vec<Arc<Pod>>,
    /// Whether plugins have looked for room.
    pub looked_for_room: bool,
    /// What came of that.
    pub room: Room,
    /// Who refused it, by alike nodes.
    pub by: Arc<[NodeClass]>,
}

impl Engine {
    /// An engine of these profiles that knows no objects yet.
    pub fn new(profiles: Vec<Profile>, timings: Timings, random: Random) -> Self {
        let memories = profiles.iter().map(|_| Memory::default()).collect();
        let profiles: Vec<Arc<Profile>> = profiles.into_iter().map(Arc::new).collect();
        let cluster = empty(&profiles, Policy::default());
        let (waiting, ready) = (Waitlist::default(), VecDeque::new());
        let queue = Queue::new(timings);
        let (jobs, asking, verdicts) = (Jobs::default(), Asking::default(), Verdicts::default());
        let (is_unsettled, laps, skipped) = (false, Laps::default(), Vec::new());
        Self {
            cluster,
            queue,
            profiles,
            memories,
            waiting,
            ready,
            random,
            is_unsettled,
            jobs,
            verdicts,
            asking,
            laps,
            skipped,
            excesses: Excesses::default(),
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

    /// The profiles.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter().map(|profile| &**profile)
    }

    /// The kinds of objects beside nodes and pods that plugins read, with the names of these plugins.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::default();
        for plugin in self.profiles.iter().flat_map(|profile| &profile.plugins) {
            for kind in plugin.reads() {
                reads.kinds.entry(*kind).or_default().insert(plugin.name());
            }
            for (kind, name) in plugin.reads_only() {
                reads.only.entry(kind).or_default().insert(name);
            }
        }
        reads
    }

    /// The time of day has come so far.
    pub fn tick(&mut self, now: Timestamp) {
        self.cluster.tick(now);
        self.is_unsettled = true;
    }

    /// When [`Engine::tick`] matters next; none while only changes do.
    pub fn tick_at(&self) -> Option<Timestamp> {
        self.cluster.wake_at()
    }

    /// The next attempt; none where no pod is to be tried now.
    pub fn attempt(&mut self, now: Moment) -> Option<Attempt> {
        let attempt = self.next_attempt(now)?;
        self.verdicts.note(&attempt, self.cluster.time());
        Some(attempt)
    }

    /// The pods whose turn came in the last [`Engine::attempt`] and that were not tried, because they are being deleted. They have left
    /// the queue.
    pub fn skipped(&self) -> &[Arc<Pod>] {
        &self.skipped
    }

    fn next_attempt(&mut self, now: Moment) -> Option<Attempt> {
        self.skipped.clear();
        self.settle(now);
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let attempt = self.attempt_asked(now).or_else(|| self.attempt_next(now))?;
        // What plugins order follows at once.
        self.ready.push_back(attempt);
        self.ready.pop_front()
    }

    /// An attempt to place the next pod of the queue.
    fn attempt_next(&mut self, now: Moment) -> Option<Attempt> {
        if self.is_held() {
            return None;
        }
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.flush(now, &judge);
        loop {
            let (pod, tried) = self.next(now)?;
            match self.profile_of(&pod) {
                Some(_) if pod.deleting => {
                    self.queue.done(&pod.uid);
                    self.skipped.push(pod);
                }
                Some(index) if self.asking.is_open() && self.consults(index, &pod) => self.asking.line_up(&pod, tried),
                Some(index) => return Some(self.attempt_with(index, pod, tried, now)),
                None => self.queue.done(&pod.uid),
            }
        }
    }

    /// The pod that a plugin wants to be next, or the first of the queue.
    fn next(&mut self, now: Moment) -> Option<(Arc<Pod>, Tried)> {
        let mut last = None;
        loop {
            let wanted = self.wanted();
            // Who wants the same pod again has not learnt that it is not there.
            let Some(uid) = wanted.filter(|uid| last.as_ref() != Some(uid)) else { return self.queue.pop(now) };
            if let Some(popped) = self.queue.pop_this(&uid, now) {
                return Some(popped);
            }
            let mut orders = Orders::default();
            for profile in self.profiles.clone() {
                profile.plugins.iter().for_each(|plugin| plugin.not_there(&uid, &mut self.cluster, &mut orders));
            }
            self.carry_out(orders, now);
            last = Some(uid);
        }
    }

    /// Whether there is something to attempt now.
    pub fn has_work(&self, now: Moment) -> bool {
        let is_over = self.waiting.first_end().is_some_and(|end| end <= now);
        let is_ready = !self.ready.is_empty() || self.asking.has_work();
        self.is_unsettled || is_ready || is_over || self.queue.has_work(now) && !self.is_held()
    }

    /// When there may be something to attempt without a further change; none where only a change helps.
    pub fn wake_at(&self) -> Option<Moment> {
        let waiting = self.waiting.first_end();
        self.queue.wake_at().filter(|_| !self.is_held()).into_iter().chain(waiting).min()
    }

    /// Whether what was written before the binding of an attempt has taken effect. None where the pod is not assumed to be
    /// there any more: it was deleted, or bound by somebody else.
    pub fn prepared(&self, attempt: &Attempt) -> Option<Prepared> {
        let placed = self.cluster.pod(&attempt.pod.uid).filter(|placed| placed.pod.node.is_none())?;
        let profile = self.profiles.get(self.profile_of(&attempt.pod)?)?;
        let mut result = Prepared::Done;
        for plugin in &profile.plugins {
            let words = |words: String| format!("running PreBind plugin {:?}: {words}", plugin.name());
            match plugin.prepared(placed, &self.cluster) {
                Prepared::Pending(timeout) if result == Prepared::Done => result = Prepared::Pending(words(timeout)),
                Prepared::Done | Prepared::Pending(_) => {}
                write @ Prepared::Write(..) => result = write,
                Prepared::Failed(why) => return Some(Prepared::Failed(words(why))),
            }
        }
        Some(result)
    }

    /// Compares sums with what the objects amount to, of so many rows or of a part of the cluster as a whole, and sets right what
    /// differs. Gives what differed, and where to go on; nowhere after the last part of a round.
    pub fn audit(&mut self, turn: Turn, rows: usize) -> (Vec<Mismatch>, Option<Turn>) {
        let (found, next) = match turn {
            Turn::Rows(from) => {
                let end = from.saturating_add(rows).min(self.cluster.width());
                let among = (from..end).filter_map(Row::at);
                let found: Vec<Mismatch> = among.flat_map(|row| self.cluster.audit(row)).collect();
                (found, Some(if end < self.cluster.width() { Turn::Rows(end) } else { Turn::Whole(0) }))
            }
            Turn::Whole(part) => {
                let next = part + 1;
                (self.cluster.audit_whole(part), (next < self.cluster.audit_parts()).then_some(Turn::Whole(next)))
            }
        };
        if !found.is_empty() {
            // What was decided by a wrong sum is decided anew.
            self.memories.iter_mut().for_each(Memory::clear);
            self.is_unsettled = true;
        }
        (found, next)
    }

    /// A whole round of [`Engine::audit`].
    pub fn audit_all(&mut self) -> Vec<Mismatch> {
        let (mut found, mut turn) = (Vec::new(), Some(Turn::default()));
        while let Some(at) = turn {
            let (some, next) = self.audit(at, usize::MAX);
            found.extend(some);
            turn = next;
        }
        found
    }

    /// What plugins want to be done beside attempts. A plugin of several profiles is asked once.
    pub fn upkeep(&self) -> Upkeep {
        self.upkeep_of(|_| true)
    }

    /// The same of some plugins, by their names.
    pub fn upkeep_of(&self, is_asked: impl Fn(&str) -> bool) -> Upkeep {
        let mut plugins = BTreeMap::new();
        let all = self.profiles.iter().flat_map(|profile| &profile.plugins);
        for plugin in all.filter(|plugin| is_asked(plugin.name())) {
            plugins.entry(plugin.name()).or_insert(plugin);
        }
        plugins.values().fold(Upkeep::default(), |mut all, plugin| {
            let upkeep = plugin.upkeep(&self.cluster);
            all.writes.extend(upkeep.writes);
            all.not_after(upkeep.again);
            all
        })
    }

    /// What of [`Engine::upkeep_of`] these plugins is not to wait until that is asked again.
    pub fn urgent_of(&mut self, is_asked: impl Fn(&str) -> bool) -> Vec<Write> {
        let plugins = self.profiles.iter().flat_map(|profile| &profile.plugins);
        let plugins = plugins.filter(|plugin| is_asked(plugin.name()));
        plugins.flat_map(|plugin| plugin.urgent(&mut self.cluster)).collect()
    }

    /// What plugins say of a pod for which there is no node, beside the event and the condition of every pod.
    pub fn explanation(&self, pod: &Pod, message: &str) -> Explanation {
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        let plugins = profile.iter().flat_map(|profile| &profile.plugins);
        plugins.fold(Explanation::default(), |mut all, plugin| {
            let Explanation { write, events } = plugin.explain(pod, message, &self.cluster);
            all.write = all.write.or(write);
            all.events.extend(events);
            all
        })
    }

    /// The binding of an attempt has failed: the pod is not on the node, and is tried again after a pause. Room is made for it no longer,
    /// unless it is another scheduler's by now, as its status says. Says no where the pod was bound or deleted by others meanwhile.
    pub fn bind_failed(&mut self, attempt: &Attempt, now: Moment) -> bool {
        let Attempt { pod, tried, .. } = attempt;
        let is_assumed = self.cluster.pod(&pod.uid).is_some_and(|placed| placed.pod.node.is_none());
        if is_assumed {
            self.unreserve(pod, *tried, Return::Failed, true, now);
            let is_foreign = |pod: &&Arc<Pod>| self.profile_of(pod).is_none();
            // It was given to another scheduler while its binding was on its way.
            if let Some(pod) = self.cluster.pending_pod(&pod.uid).filter(is_foreign).cloned() {
                self.queue.remove(&pod.uid);
                if self.cluster.policy().keeps_foreign_nominations {
                    let row = pod.nominated.as_ref().and_then(|node| self.cluster.row(node));
                    self.make_room(&pod, row, now);
                }
            }
        }
        is_assumed
    }

    /// Forgets all objects, and all that was assumed.
    pub fn clear(&mut self) {
        let profiles = &self.profiles;
        let profile =
            |name: &str| profiles.iter().find(|profile| &*profile.scheduler == name).map(|profile| &**profile);
        self.verdicts.spell_out(profile, &self.cluster);
        self.cluster = empty(&self.profiles, self.cluster.policy().clone());
        self.queue.clear();
        self.waiting = Waitlist::default();
        self.ready.clear();
        self.skipped.clear();
        self.asking.clear();
        self.memories.iter_mut().for_each(Memory::clear);
        self.jobs = Jobs::default();
        self.excesses = Excesses::default();
    }

    /// The profile of a pod.
    fn profile_of(&self, pod: &Pod) -> Option<usize> {
        self.profiles.iter().position(|profile| profile.scheduler == pod.template.scheduler)
    }

    fn notify(&mut self, event: &Event, now: Moment) {
        self.is_unsettled = true;
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.notify(event, now, &judge);
    }

    fn give_back(&mut self, pod: &Arc<Pod>, tried: Tried, why: Return, now: Moment) {
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.give_back(Arc::clone(pod), tried, why, now, &judge);
    }

    /// Takes a pod from its place that is not to be bound, and puts it back into the queue. Its own absence does not help it.
    fn unreserve(&mut self, pod: &Arc<Pod>, tried: Tried, why: Return, helps_others: bool, now: Moment) {
        let Some(placed) = self.cluster.remove_pod(&pod.uid) else { return };
        let mut orders = Orders::default();
        if let Some(profile) = self.profile_of(pod).map(|index| Arc::clone(&self.profiles[index])) {
            for (_, plugin) in profile.among(&profile.reserves).rev() {
                plugin.unreserved(&placed, &mut self.cluster, &mut orders);
            }
        }
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.give_back(Arc::clone(pod), tried, why, now, &judge);
        if helps_others {
            self.queue.notify_others(&Event::PodRemoved(placed.pod), Some(&pod.uid), now, &judge);
        }
        self.carry_out(orders, now);
    }

    /// An eviction that an attempt ordered has failed. Who waits for it waits no longer.
    pub fn eviction_failed(&mut self, victim: &Uid, now: Moment) {
        if let Some(by) = self.cluster.not_evicted(victim) {
            let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.release(&by, now, &judge);
        }
    }
}

/// A cluster with the states of these plugins, and nothing in it.
fn empty(profiles: &[Arc<Profile>], policy: Policy) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.schedule(profiles.iter().map(|profile| Arc::clone(&profile.scheduler)).collect(), policy);
    let plugins = || profiles.iter().flat_map(|profile| &profile.plugins);
    plugins().flat_map(|plugin| plugin.topology_keys()).for_each(|key| cluster.pin_topology(&key));
    plugins().filter_map(|plugin| plugin.state()).for_each(|state| cluster.add_state(state));
    cluster
}
