//! The cluster, the queue and the profiles together: objects and time go in, attempts come out.
//!
//! It belongs to one task, which changes it and asks it; nothing is locked. A pod for which a node was found is assumed to
//! be there from then on, until it is reported bound or the binding has failed.

#[cfg(test)]
mod tests;

mod jobs;
mod judge;
mod waiting;
mod why;

use std::{
    any::TypeId,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid, write::Write};
use koord_resource::controller::ResourceKind;

pub use self::{
    jobs::Ended,
    why::{Decision, Why},
};
use self::{jobs::Jobs, judge::Judged, waiting::Waiting};
use crate::{
    cluster::{Cluster, Placed},
    columns::Row,
    cycle::{Found, Memory, Profile, Verdict},
    event::Event,
    hold::Holds,
    node::Node,
    object::{Object, ObjectChange},
    plugin::{
        Code, Explanation, Orders, Patch, Permit, PostFilter, Prepared, Rejection, Request, Searched, StandIn, Upkeep,
    },
    pod::Pod,
    preemption::Attempted,
    queue::{PluginSet, Queue, Return, Timings, Tried},
};

/// Kinds of objects, with the names of the plugins that read them.
pub type Reads = BTreeMap<ResourceKind, BTreeSet<&'static str>>;

/// A scheduler without hands.
pub struct Engine {
    cluster: Cluster,
    queue: Queue,
    profiles: Vec<Arc<Profile>>,
    memories: Vec<Memory>,
    waiting: BTreeMap<Uid, Waiting>,
    /// Attempts that others brought to an end.
    ready: VecDeque<Attempt>,
    random: Random,
    /// Something has changed since plugins were asked for orders.
    is_unsettled: bool,
    /// Jobs that are under way, and those that have ended.
    jobs: Jobs,
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
        /// What is written instead of a binding.
        instead: Option<Write>,
    },
    /// The pod has its place, but a plugin lets it wait before it is bound.
    Waiting {
        /// The node.
        node: Arc<str>,
    },
    /// No node takes it.
    Refused(Refused),
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
    /// Whether plugins have looked for room.
    pub looked_for_room: bool,
}

impl Engine {
    /// An engine of these profiles that knows no objects yet.
    pub fn new(profiles: Vec<Profile>, timings: Timings, random: Random) -> Self {
        let memories = profiles.iter().map(|_| Memory::default()).collect();
        let profiles: Vec<Arc<Profile>> = profiles.into_iter().map(Arc::new).collect();
        let cluster = empty(&profiles);
        let (waiting, ready) = (BTreeMap::new(), VecDeque::new());
        let queue = Queue::new(timings);
        let jobs = Jobs::default();
        Self { cluster, queue, profiles, memories, waiting, ready, random, is_unsettled: false, jobs }
    }

    /// The cluster as it is known, with what is assumed.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The pods that wait.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The profiles.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter().map(|profile| &**profile)
    }

    /// The kinds of objects beside nodes and pods that plugins read, with the names of these plugins.
    pub fn reads(&self) -> Reads {
        let mut reads = Reads::new();
        for plugin in self.profiles.iter().flat_map(|profile| &profile.plugins) {
            for kind in plugin.reads() {
                reads.entry(*kind).or_default().insert(plugin.name());
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

    /// A node was added or changed.
    pub fn set_node(&mut self, node: Arc<Node>, now: Moment) {
        let event = match self.cluster.set_node(Arc::clone(&node)) {
            None => Event::NodeAdded(node),
            Some(old) => Event::NodeChanged { old, new: node },
        };
        self.notify(&event, now);
    }

    /// A node was deleted.
    pub fn remove_node(&mut self, name: &str) {
        self.cluster.remove_node(name);
    }

    /// An object of another kind was added or changed.
    pub fn set_object(&mut self, object: Object, now: Moment) {
        let plugins = self.profiles.iter().flat_map(|profile| &profile.plugins);
        let mut stand_ins = plugins.map(|plugin| plugin.stand_in(&object));
        let stand_in = stand_ins.find(|stand_in| *stand_in != StandIn::None).unwrap_or_default();
        let uid = object.uid.clone();
        let change = self.cluster.set_object(object);
        self.object_changed(change, now);
        match stand_in {
            StandIn::None => {}
            StandIn::Gone => self.remove_pod(&uid, now),
            StandIn::Pod(pod) => {
                // An object that had a node and has none any more is placed anew.
                let was_bound = |placed: &Placed| placed.pod.node.is_some() && pod.node.is_none();
                if self.cluster.pod(&uid).is_some_and(was_bound) {
                    self.remove_pod(&uid, now);
                }
                self.set_pod(pod, now);
            }
        }
    }

    fn object_changed(&mut self, change: ObjectChange, now: Moment) {
        if let Some(gone) = change.gone()
            && (self.cluster.pod(gone).is_some() || self.cluster.pending_pod(gone).is_some())
        {
            self.remove_pod(&gone.clone(), now);
        }
        self.notify(&Event::Object(change), now);
    }

    /// An object of another kind was deleted.
    pub fn remove_object(&mut self, type_: TypeId, key: &str, now: Moment) {
        if let Some(change) = self.cluster.remove_object(type_, key) {
            self.object_changed(change, now);
        }
    }

    /// A pod was added or changed. One that has ended is removed instead.
    pub fn set_pod(&mut self, pod: Arc<Pod>, now: Moment) {
        if let Some(node) = pod.node.clone() {
            self.bound(&pod, &node, now);
            return;
        }
        self.cluster.know(&pod);
        self.is_unsettled = true;
        // What is assumed is being bound; the change comes again with the node.
        if self.cluster.pod(&pod.uid).is_none() && self.profile_of(&pod).is_some() {
            let row = pod.nominated.as_ref().and_then(|node| self.cluster.row(node));
            if row.is_some() && self.cluster.nomination(&pod.uid).is_none() {
                self.cluster.nominate(&pod, row);
            }
            let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.set(pod, now, &judge);
        }
    }

    fn bound(&mut self, pod: &Arc<Pod>, node: &Arc<str>, now: Moment) {
        self.queue.remove(&pod.uid);
        self.waiting.remove(&pod.uid);
        self.cluster.nominate(pod, None);
        self.cluster.know(pod);
        let known = self.cluster.pod(&pod.uid);
        if known.is_some_and(|known| known.pod == *pod) {
            return;
        }
        let row = self.cluster.row(node);
        let assumed = known.filter(|known| Some(known.row) == row).map(|known| known.holds.clone());
        let mut holds = assumed.unwrap_or_default();
        // Pods of other schedulers hold what they hold all the same.
        let profile = self.profile_of(pod).or(if self.profiles.is_empty() { None } else { Some(0) });
        for plugin in profile.and_then(|index| self.profiles.get(index)).iter().flat_map(|profile| &profile.plugins) {
            plugin.given(pod, &mut holds);
        }
        self.cluster.place(Arc::clone(pod), node, holds);
        self.notify(&Event::PodAssigned(Arc::clone(pod)), now);
    }

    /// A pod was deleted, or has ended.
    pub fn remove_pod(&mut self, uid: &Uid, now: Moment) {
        self.queue.remove(uid);
        self.waiting.remove(uid);
        if let Some(pod) = self.cluster.pending_pod(uid).cloned() {
            let had = self.cluster.nomination(uid).is_some();
            self.cluster.nominate(&pod, None);
            if had {
                self.notify(&Event::NominationChanged(pod.template.priority), now);
            }
        }
        if let Some(placed) = self.cluster.forget(uid) {
            self.notify(&Event::PodRemoved(placed.pod), now);
        }
        self.is_unsettled = true;
    }

    /// Pods of this name are gone, but for one.
    pub fn remove_others(&mut self, key: &ObjectKey, but: Option<&Uid>, now: Moment) {
        let placed = self.cluster.pods().map(|placed| &placed.pod);
        let named = placed.chain(self.cluster.pending()).filter(|pod| pod.key == *key && Some(&pod.uid) != but);
        for uid in named.map(|pod| pod.uid.clone()).collect::<Vec<_>>() {
            self.remove_pod(&uid, now);
        }
    }

    /// The next attempt; none where no pod is to be tried now.
    pub fn attempt(&mut self, now: Moment) -> Option<Attempt> {
        self.settle(now);
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.flush(now, &judge);
        loop {
            let (pod, tried) = self.next(now)?;
            if !pod.deleting
                && let Some(index) = self.profile_of(&pod)
            {
                let attempt = self.attempt_with(index, pod, tried, now);
                // What plugins order follows at once.
                self.ready.push_back(attempt);
                return self.ready.pop_front();
            }
            self.queue.done(&pod.uid);
        }
    }

    /// The pod that a plugin wants to be next, or the first of the queue.
    fn next(&mut self, now: Moment) -> Option<(Arc<Pod>, Tried)> {
        let mut last = None;
        loop {
            let mut plugins = self.profiles.iter().flat_map(|profile| &profile.plugins);
            let wanted = plugins.find_map(|plugin| plugin.next_pod(&self.cluster));
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
        let is_over = self.waiting.values().any(|waiting| waiting.until <= now);
        self.is_unsettled || !self.ready.is_empty() || is_over || self.queue.has_work(now)
    }

    /// When there may be something to attempt without a further change; none where only a change helps.
    pub fn wake_at(&self) -> Option<Moment> {
        let waiting = self.waiting.values().map(|waiting| waiting.until).min();
        self.queue.wake_at().into_iter().chain(waiting).min()
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
                Prepared::Done => {}
                Prepared::Pending(timeout) => result = Prepared::Pending(words(timeout)),
                Prepared::Failed(why) => return Some(Prepared::Failed(words(why))),
            }
        }
        Some(result)
    }

    /// What plugins want to be done beside attempts. A plugin of several profiles is asked once.
    pub fn upkeep(&self) -> Upkeep {
        let mut plugins = BTreeMap::new();
        for plugin in self.profiles.iter().flat_map(|profile| &profile.plugins) {
            plugins.entry(plugin.name()).or_insert(plugin);
        }
        plugins.values().fold(Upkeep::default(), |mut all, plugin| {
            let upkeep = plugin.upkeep(&self.cluster);
            all.writes.extend(upkeep.writes);
            all.not_after(upkeep.again);
            all
        })
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

    /// The binding of an attempt has failed: the pod is not on the node, and is tried again after a pause.
    pub fn bind_failed(&mut self, attempt: &Attempt, now: Moment) {
        let Attempt { pod, tried, .. } = attempt;
        // Who has bound or deleted it meanwhile knows better.
        let is_assumed = self.cluster.pod(&pod.uid).is_some_and(|placed| placed.pod.node.is_none());
        if is_assumed {
            self.unreserve(pod, *tried, Return::Failed, true, now);
        }
    }

    /// Forgets all objects, and all that was assumed.
    pub fn clear(&mut self) {
        self.cluster = empty(&self.profiles);
        self.queue.clear();
        self.waiting.clear();
        self.ready.clear();
        self.memories.iter_mut().for_each(Memory::clear);
        self.jobs = Jobs::default();
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

    fn attempt_with(&mut self, index: usize, pod: Arc<Pod>, tried: Tried, now: Moment) -> Attempt {
        let profile = Arc::clone(&self.profiles[index]);
        self.hide(&profile, &pod);
        let random = &mut self.random;
        let draw = |ties: u32| u32::try_from(random.below(u64::from(ties))).unwrap_or(0);
        let found = profile.search(&pod, &mut self.cluster, &mut self.memories[index], draw);
        let searched = found.searched();
        let outcome = match found {
            Found::Node { row, score, ties, .. } => self.reserve(&profile, &pod, tried, (row, score, ties), now),
            found => {
                if let Some(rejected) = profile.of_reserve(&found, &self.cluster) {
                    self.refuse_in_reserve(&profile, &pod, tried, rejected, now)
                } else {
                    let (refused_by, refused) = self.refuse(&profile, &pod, &found, now);
                    self.give_back(&pod, tried, refused.why(refused_by), now);
                    Outcome::Refused(refused)
                }
            }
        };
        Attempt { pod, tried, began: now, has_waited: false, searched, outcome }
    }

    /// Takes away what is not there for this pod, until it is decided about it.
    fn hide(&mut self, profile: &Profile, pod: &Arc<Pod>) {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let hidden: Vec<Uid> =
            profile.plugins.iter().flat_map(|plugin| plugin.hides(&request, &self.cluster)).collect();
        for uid in &hidden {
            self.cluster.hide(uid);
        }
    }

    /// Gives the pod what it needs on the node, and puts it there.
    fn reserve(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        tried: Tried,
        (row, score, ties): (Row, i64, u32),
        now: Moment,
    ) -> Outcome {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let node = self.cluster.node(row).map(|node| Arc::clone(&node.name)).unwrap_or_default();
        let mut holds = Holds::default();
        let mut given = profile.among(&profile.reserves).map(|(index, plugin)| {
            plugin.reserve(&request, &self.cluster, row, &mut holds).map_err(|rejection| (index, rejection))
        });
        let refused = given.find_map(Result::err);
        if let Some(refused) = refused {
            return self.refuse_in_reserve(profile, pod, tried, refused, now);
        }
        self.cluster.show();
        self.cluster.nominate(pod, None);
        self.cluster.place(Arc::clone(pod), &node, holds);
        let (mut orders, mut wait) = (Orders::default(), None);
        let mut refused = None;
        for (index, plugin) in profile.among(&profile.permits) {
            match plugin.permit(&request, &mut self.cluster, &mut orders) {
                Permit::Allow => {}
                Permit::Wait(limit) => wait = wait.filter(|(known, _)| *known <= limit).or(Some((limit, index))),
                Permit::Reject(message) => {
                    refused = Some((index, message));
                    break;
                }
            }
        }
        let outcome = if let Some((index, message)) = refused {
            let (refused_by, refused) = rejected(index, Rejection::unschedulable(message));
            self.unreserve(pod, tried, refused.why(refused_by), true, now);
            Outcome::Refused(refused)
        } else {
            let (limit, plugin) = wait.unwrap_or_default();
            let (pod, until, began) = (Arc::clone(pod), now + limit, now);
            let reserved = Waiting { pod, tried, began, node: Arc::clone(&node), score, ties, plugin, until, limit };
            if wait.is_none() {
                self.bind(&reserved)
            } else {
                self.waiting.insert(reserved.pod.uid.clone(), reserved);
                Outcome::Waiting { node }
            }
        };
        self.carry_out(orders, now);
        outcome
    }

    /// The node that was chosen cannot give the pod what it needs.
    fn refuse_in_reserve(
        &mut self,
        profile: &Profile,
        pod: &Arc<Pod>,
        tried: Tried,
        (index, rejection): (u8, Rejection),
        now: Moment,
    ) -> Outcome {
        self.cluster.show();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        let orders = self.after_refusal(&request, &Found::Never(index, rejection.clone()));
        self.carry_out(orders, now);
        let (refused_by, refused) = rejected(index, rejection);
        self.give_back(pod, tried, refused.why(refused_by), now);
        Outcome::Refused(refused)
    }

    /// The binding of a pod that is in its place.
    fn bind(&mut self, bind: &Waiting) -> Outcome {
        let Waiting { pod, node, score, ties, .. } = bind;
        self.queue.done(&pod.uid);
        let (mut patch, mut instead) = (Patch::default(), None);
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        if let (Some(placed), Some(profile)) = (self.cluster.pod(&pod.uid), profile) {
            let request = Request { pod, class: &placed.class, plugins: &profile.plugins };
            for (_, plugin) in profile.among(&profile.pre_binds) {
                plugin.pre_bind(&request, placed, &self.cluster, &mut patch);
            }
            instead = profile.plugins.iter().find_map(|plugin| plugin.bind(&request, placed, &self.cluster));
        }
        Outcome::Bind { node: Arc::clone(node), score: *score, ties: *ties, patch, instead }
    }

    /// No node takes the pod: room is made for it, if there is a way.
    fn refuse(&mut self, profile: &Arc<Profile>, pod: &Arc<Pod>, found: &Found, now: Moment) -> (PluginSet, Refused) {
        let (refused_by, mut message) = profile.words(found, &self.cluster);
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins };
        if matches!(found, Found::Never(_, Rejection { code: Code::Error, .. })) {
            self.cluster.show();
            let orders = self.after_refusal(&request, found);
            self.carry_out(orders, now);
            return (refused_by, Refused { message, is_error: true, ..Refused::default() });
        }
        let random = &mut self.random;
        let mut draw = |below: u32| u32::try_from(random.below(u64::from(below))).unwrap_or(0);
        let (mut words, mut together) = (Vec::new(), Vec::new());
        let mut nominated = None;
        if !self.cluster.is_empty() {
            for index in &profile.post_filters {
                let mut attempted = Attempted { cluster: &mut self.cluster, profile, found, draw: &mut draw };
                match profile.plugins[usize::from(*index)].post_filter(&request, &mut attempted) {
                    PostFilter::Nothing(word) => words.push(word),
                    PostFilter::Stop(word) => {
                        words = vec![word];
                        break;
                    }
                    PostFilter::Nominate { row, victims } => {
                        words.clear();
                        nominated = Some((row, victims));
                        break;
                    }
                    PostFilter::Together { rooms, victims, words: said } => {
                        let own = rooms.iter().find(|(uid, _)| *uid == pod.uid).map(|(_, row)| *row);
                        nominated = own.map(|row| (row, victims));
                        together = rooms;
                        words.push(said);
                        if nominated.as_ref().is_some_and(|(_, victims)| !victims.is_empty()) {
                            words.clear();
                            break;
                        }
                    }
                }
            }
        }
        self.cluster.show();
        for (other, row) in together.into_iter().filter(|(uid, _)| *uid != pod.uid) {
            if let Some(other) = self.cluster.pending_pod(&other).cloned() {
                self.cluster.nominate(&other, Some(row));
            }
        }
        words.retain(|word| !word.is_empty());
        if !words.is_empty() {
            message = format!("{message} {}", words.join(", "));
        }
        let mut orders = self.after_refusal(&request, found);
        let (row, victims) = nominated.map_or((None, Vec::new()), |(row, victims)| (Some(row), victims));
        let had = self.cluster.nomination(&pod.uid);
        self.cluster.nominate(pod, row);
        if had.is_some() && had != row {
            self.notify(&Event::NominationChanged(pod.template.priority), now);
        }
        let (unbound, victims): (Vec<_>, Vec<_>) = victims.into_iter().partition(|uid| self.waiting.contains_key(uid));
        orders.reject.extend(unbound.into_iter().map(|uid| (uid, "preempted".to_owned())));
        let victims: Vec<Arc<Pod>> =
            victims.iter().filter_map(|uid| self.cluster.pod(uid)).map(|placed| Arc::clone(&placed.pod)).collect();
        for victim in &victims {
            self.cluster.evict(&victim.uid, &pod.uid);
        }
        self.carry_out(orders, now);
        let node = row.and_then(|row| self.cluster.node(row)).map(|node| Arc::clone(&node.name));
        let looked_for_room = !self.cluster.is_empty() && !profile.post_filters.is_empty();
        (refused_by, Refused { message, is_error: false, nominated: node, victims, looked_for_room })
    }

    /// What plugins order after a pod was refused.
    fn after_refusal(&mut self, request: &Request<'_>, found: &Found) -> Orders {
        let mut orders = Orders::default();
        request.plugins.iter().for_each(|plugin| plugin.refused(request, found, &mut self.cluster, &mut orders));
        orders
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
fn empty(profiles: &[Arc<Profile>]) -> Cluster {
    let mut cluster = Cluster::default();
    let plugins = || profiles.iter().flat_map(|profile| &profile.plugins);
    plugins().flat_map(|plugin| plugin.topology_keys()).for_each(|key| cluster.pin_topology(&key));
    plugins().filter_map(|plugin| plugin.state()).for_each(|state| cluster.add_state(state));
    cluster
}

/// The words of a pod that was rejected on the node that was chosen.
fn rejected(plugin: u8, rejection: Rejection) -> (PluginSet, Refused) {
    let is_error = rejection.code == Code::Error;
    let message =
        if is_error { rejection.message } else { format!("0/1 nodes are available: 1 {}.", rejection.message) };
    (PluginSet::of(plugin), Refused { message, is_error, ..Refused::default() })
}

impl Refused {
    fn why(&self, refused_by: PluginSet) -> Return {
        if self.is_error { Return::Failed } else { Return::Refused(refused_by) }
    }
}

impl Profile {
    /// The refusal of Reserve among those of nodes, if there is one.
    fn of_reserve(&self, found: &Found, cluster: &Cluster) -> Option<(u8, Rejection)> {
        let Found::Nothing(refusals) = found else { return None };
        refusals.keys().find_map(|Verdict { plugin, refusal }| {
            let refusing = self.plugins.get(usize::from(*plugin)).filter(|plugin| plugin.is_of_reserve(refusal))?;
            Some((*plugin, Rejection::unschedulable(refusing.reasons(refusal, cluster).join(", "))))
        })
    }

    /// Who refused the pod, and what is said about it.
    fn words(&self, found: &Found, cluster: &Cluster) -> (PluginSet, String) {
        let refused_by = match found {
            _ if cluster.is_empty() => PluginSet::default(),
            Found::Node { .. } => PluginSet::default(),
            Found::Never(plugin, _) => PluginSet::of(*plugin),
            Found::Nothing(refusals) => {
                refusals.keys().fold(PluginSet::default(), |set, verdict| set.with(verdict.plugin))
            }
        };
        (refused_by, found.words(&self.plugins, cluster))
    }
}
