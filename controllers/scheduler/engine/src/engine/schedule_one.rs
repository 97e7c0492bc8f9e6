//! One attempt, from NextPod to Bind: which pod is tried, the search for its node, Reserve, Permit, and what is written with its binding.
//!
//! What follows where no node takes the pod is in `failure_handler`, preemption in `preemption`.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_scheduler_framework::{
    AttemptState, Found, Orders, Patch, PermitResult, PreBindProgress, Profile, Reason, Rejection, Request, Verdict,
    cluster::{Cluster, ExcludedPods},
    columns::Row,
    event::Event,
    extender::ExtenderArgs,
    hold::{Holds, Resized},
    pod::{Pod, Template},
    timing::{ExtensionPoint, Untimed},
};

use super::{
    Attempt, Engine, Outcome, failure_handler::rejected, latency::AttemptPart, queueing_hints::PluginHints,
    waiting_pods::Waiting,
};
use crate::queue::{Return, Tried};

/// How long a pod waits after Permit at most, whatever plugins want.
const PERMIT_WAIT_MAX: Duration = Duration::from_mins(15);

impl Engine {
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
        self.update_waiting_pods(now);
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let attempt = self.resume_after_extender(now).or_else(|| self.schedule_next(now))?;
        // What plugins order follows at once.
        self.ready.push_back(attempt);
        self.ready.pop_front()
    }

    /// An attempt to place the next pod of the queue.
    fn schedule_next(&mut self, now: Moment) -> Option<Attempt> {
        if self.is_held() {
            return None;
        }
        let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.flush(now, &hints);
        loop {
            let (pod, tried) = self.next(now)?;
            match self.profile_of(&pod) {
                Some(_) if pod.deleting => {
                    self.queue.done(&pod.uid);
                    self.skipped.push(pod);
                }
                Some(index) if self.extender_calls.is_open() && self.may_call_extenders(index, &pod) => {
                    self.extender_calls.enqueue(&pod, tried);
                }
                Some(index) => return Some(self.schedule_one(index, pod, tried, now)),
                None => self.queue.done(&pod.uid),
            }
        }
    }

    /// The pod that a plugin wants to be next, or the first of the queue.
    fn next(&mut self, now: Moment) -> Option<(Arc<Pod>, Tried)> {
        let mut last = None;
        loop {
            let next_pod_of_plugins = self.next_pod_of_plugins();
            // Who wants the same pod again has not learnt that it is not there.
            let Some(uid) = next_pod_of_plugins.filter(|uid| last.as_ref() != Some(uid)) else {
                return self.queue.pop(now);
            };
            if let Some(popped) = self.queue.pop_this(&uid, now) {
                return Some(popped);
            }
            let mut orders = Orders::default();
            for profile in self.profiles.clone() {
                for point in profile.each(|plugin| &plugin.next_pod) {
                    point.next_pod_unavailable(&uid, &mut self.cluster, &mut orders);
                }
            }
            self.apply_orders(orders, now);
            last = Some(uid);
        }
    }

    /// Whether there is something to attempt now.
    pub fn has_work(&self, now: Moment) -> bool {
        let is_over = self.waiting.first_end().is_some_and(|end| end <= now);
        let is_ready = !self.ready.is_empty() || self.extender_calls.has_work();
        self.has_changed || is_ready || is_over || self.queue.has_work(now) && !self.is_held()
    }

    /// When there may be something to attempt without a further change; none where only a change helps.
    pub fn wake_at(&self) -> Option<Moment> {
        let waiting = self.waiting.first_end();
        self.queue.wake_at().filter(|_| !self.is_held()).into_iter().chain(waiting).min()
    }

    /// Searches a node for a pod by the profile of this index, and reserves what the pod needs there or reports why no node takes it.
    pub(super) fn schedule_one(&mut self, index: usize, pod: Arc<Pod>, tried: Tried, now: Moment) -> Attempt {
        self.current_attempt.set(Some((Arc::clone(&pod), now)));
        let profile = Arc::clone(&self.profiles[index]);
        self.latencies.begin();
        let state = &AttemptState::default();
        self.restore_reservations(&profile, &pod, state);
        let mut found = self.search(index, &profile, &pod, state);
        if found.is_outdated() {
            self.clear_extender_results();
            found = self.search(index, &profile, &pod, state);
        }
        self.latencies.end(AttemptPart::Filter, matches!(found, Found::Node { .. }));
        let searched = found.searched();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &profile.plugins, state };
        let outcome = match found {
            Found::Node { .. } if self.calls_extenders(&request) => {
                self.cluster.exclude_all();
                let rows = profile.takers(&request, &mut self.cluster);
                let nodes = rows.into_iter().filter_map(|row| self.cluster.node(row));
                let nodes = nodes.map(|node| Arc::clone(&node.name)).collect();
                self.call_extenders(&pod, tried, ExtenderArgs::Nodes(nodes), now)
            }
            Found::Node { row, score, ties, .. } => self.reserve(&profile, &pod, tried, (row, score, ties), state, now),
            found => {
                self.cluster.exclude_all();
                if let Some(rejected) = refusal_of_reserve(&profile, &found, &self.cluster) {
                    self.fail_in_reserve(&profile, &pod, tried, rejected, state, now)
                } else {
                    match self.refuse(&profile, &pod, &found, state, now) {
                        Ok((refused_by, refused)) => {
                            self.give_back(&pod, tried, refused.why(refused_by), now);
                            Outcome::Refused(refused)
                        }
                        Err(victims) => self.call_extenders(&pod, tried, ExtenderArgs::Victims(victims), now),
                    }
                }
            }
        };
        self.latencies.finish();
        self.current_attempt.set(None);
        Attempt { pod, tried, began: now, has_waited: false, searched, outcome }
    }

    fn search(&mut self, index: usize, profile: &Profile, pod: &Arc<Pod>, state: &AttemptState) -> Found {
        let Self { cluster, candidate_caches, random, latencies, .. } = self;
        let cache = &mut candidate_caches[index];
        let draw = |ties: u32| u32::try_from(random.below(u64::from(ties))).unwrap_or(0);
        match latencies.stopwatch() {
            None => profile.search_timed(pod, state, cluster, cache, draw, &mut Untimed),
            Some(mut stopwatch) => profile.search_timed(pod, state, cluster, cache, draw, &mut stopwatch),
        }
    }

    /// Restores what is reserved for this pod, until it is decided about it.
    pub(super) fn restore_reservations(&mut self, profile: &Profile, pod: &Arc<Pod>, state: &AttemptState) {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins, state };
        let points = profile.each(|plugin| &plugin.reservation_restore);
        let excluded: Vec<ExcludedPods> = points.filter_map(|point| point.restore(&request, &self.cluster)).collect();
        self.cluster.exclude(excluded);
    }

    /// Reserve and Permit on the chosen node, where the pod is assumed from then on.
    pub(super) fn reserve(
        &mut self,
        profile: &Arc<Profile>,
        pod: &Arc<Pod>,
        tried: Tried,
        (row, score, ties): (Row, i64, u32),
        state: &AttemptState,
        now: Moment,
    ) -> Outcome {
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins, state };
        let node = self.cluster.node(row).map(|node| Arc::clone(&node.name)).unwrap_or_default();
        self.cluster.exclude_on(row);
        let mut holds = Holds::default();
        let mut given = profile.at(&profile.reserves, |plugin| &plugin.reserve).map(|(index, plugin, point)| {
            let reserve = || point.reserve(&request, &self.cluster, row, &mut holds);
            self.latencies.call(plugin, ExtensionPoint::Reserve, reserve).map_err(|rejection| (index, rejection))
        });
        let refused = given.find_map(Result::err);
        self.latencies.end(AttemptPart::Reserve, refused.is_none());
        if let Some(refused) = refused {
            return self.fail_in_reserve(profile, pod, tried, refused, state, now);
        }
        self.cluster.include_all();
        self.cluster.nominate(pod, None);
        self.cluster.place(resized(pod, &holds), &node, holds);
        let mut orders = Orders::default();
        let permitted = self.permit(profile, &request, &mut orders);
        self.latencies.end(AttemptPart::Permit, permitted.is_ok());
        let outcome = match permitted {
            Err((index, message)) => {
                let (refused_by, refused) = rejected(profile, index, Rejection::unschedulable(message));
                self.unreserve(pod, tried, refused.why(refused_by), true, now);
                Outcome::Refused(refused)
            }
            Ok(wait) => {
                let (limit, plugin) = wait.unwrap_or_default();
                let (pod, until, began) = (Arc::clone(pod), now + limit, now);
                let reserved =
                    Waiting { pod, tried, began, node: Arc::clone(&node), score, ties, plugin, until, limit };
                if wait.is_none() {
                    self.bind(&reserved)
                } else {
                    self.waiting.insert(reserved);
                    Outcome::Waiting { node }
                }
            }
        };
        self.apply_orders(orders, now);
        outcome
    }

    /// Whether the pod is bound at once: none where it is, or else for how long it waits and for which plugin. An error where a plugin
    /// rejects it.
    fn permit(
        &mut self,
        profile: &Profile,
        request: &Request<'_>,
        orders: &mut Orders,
    ) -> Result<Option<(Duration, u8)>, (u8, Reason)> {
        let mut wait = None;
        for (index, plugin, point) in profile.at(&profile.permits, |plugin| &plugin.permit) {
            let permit = || point.permit(request, &mut self.cluster, orders);
            match self.latencies.call(plugin, ExtensionPoint::Permit, permit) {
                PermitResult::Allow => {}
                PermitResult::Wait(limit) => {
                    let limit = limit.min(PERMIT_WAIT_MAX);
                    wait = wait.filter(|(known, _)| *known <= limit).or(Some((limit, index)));
                }
                PermitResult::Reject(message) => return Err((index, message)),
            }
        }
        Ok(wait)
    }

    /// The node that was chosen cannot give the pod what it needs.
    pub(super) fn fail_in_reserve(
        &mut self,
        profile: &Profile,
        pod: &Arc<Pod>,
        tried: Tried,
        (index, rejection): (u8, Rejection),
        state: &AttemptState,
        now: Moment,
    ) -> Outcome {
        self.cluster.include_all();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins, state };
        let orders = self.after_refusal(&request, &Found::Never(index, rejection.clone()));
        self.nominate(pod, None, now);
        self.apply_orders(orders, now);
        let (refused_by, mut refused) = rejected(profile, index, rejection);
        if refused.is_error {
            refused.message = format!("running Reserve plugin {:?}: {}", profile.name_of(index), refused.message);
        }
        self.give_back(pod, tried, refused.why(refused_by), now);
        Outcome::Refused(refused)
    }

    /// PreBind and Bind of a reserved pod.
    pub(super) fn bind(&mut self, bind: &Waiting) -> Outcome {
        let Waiting { pod, node, score, ties, .. } = bind;
        self.queue.done(&pod.uid);
        let (mut patch, mut instead) = (Patch::default(), None);
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        if let (Some(placed), Some(profile)) = (self.cluster.pod(&pod.uid), profile) {
            let state = &AttemptState::default();
            let request = Request { pod, class: &placed.class, plugins: &profile.plugins, state };
            for (_, plugin, point) in profile.at(&profile.pre_binds, |plugin| &plugin.pre_bind) {
                let write = || point.pre_bind(&request, placed, &self.cluster, &mut patch);
                self.latencies.call(plugin, ExtensionPoint::PreBind, write);
            }
            instead = profile.plugins.iter().find_map(|plugin| {
                let write = plugin.bind.as_ref()?.bind(&request, placed, &self.cluster)?;
                Some((plugin.name(), write))
            });
        }
        Outcome::Bind { node: Arc::clone(node), score: *score, ties: *ties, patch, instead }
    }

    /// Whether what was written before the binding of an attempt has taken effect. None where the pod is not assumed to be
    /// there any more: it was deleted, or bound by another scheduler.
    pub fn prepared(&self, attempt: &Attempt) -> Option<PreBindProgress> {
        let placed = self.cluster.pod(&attempt.pod.uid).filter(|placed| placed.pod.node.is_none())?;
        let profile = self.profiles.get(self.profile_of(&attempt.pod)?)?;
        let mut result = PreBindProgress::Done;
        for plugin in &profile.plugins {
            let Some(point) = &plugin.pre_bind else { continue };
            let words = |words: String| format!("running PreBind plugin {:?}: {words}", plugin.name());
            match point.pre_bind_progress(placed, &self.cluster) {
                PreBindProgress::Pending(timeout) if result == PreBindProgress::Done => {
                    result = PreBindProgress::Pending(words(timeout));
                }
                PreBindProgress::Done | PreBindProgress::Pending(_) => {}
                write @ PreBindProgress::Write(..) => result = write,
                PreBindProgress::Failed(why) => return Some(PreBindProgress::Failed(words(why))),
            }
        }
        Some(result)
    }

    /// The binding of an attempt has failed: the pod is not on the node, and is tried again after a pause. It is nominated no longer,
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
                    self.nominate(&pod, row, now);
                }
            }
        }
        is_assumed
    }

    /// Takes a pod from its place that is not to be bound, and puts it back into the queue. Its own absence does not help it.
    pub(super) fn unreserve(&mut self, pod: &Arc<Pod>, tried: Tried, why: Return, helps_others: bool, now: Moment) {
        let Some(placed) = self.cluster.remove_pod(&pod.uid) else { return };
        let mut orders = Orders::default();
        if let Some(profile) = self.profile_of(pod).map(|index| Arc::clone(&self.profiles[index])) {
            for (_, _, point) in profile.at(&profile.reserves, |plugin| &plugin.reserve).rev() {
                point.unreserve(&placed, &mut self.cluster, &mut orders);
            }
        }
        let hints = PluginHints { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.give_back(Arc::clone(pod), tried, why, now, &hints);
        if helps_others {
            self.queue.notify_others(&Event::PodRemoved(placed.pod), Some(&pod.uid), now, &hints);
        }
        self.apply_orders(orders, now);
    }
}

/// The refusal of Reserve among those of nodes, if there is one.
fn refusal_of_reserve(profile: &Profile, found: &Found, cluster: &Cluster) -> Option<(u8, Rejection)> {
    let Found::Nothing(refusals) = found else { return None };
    refusals.iter().find_map(|(Verdict { plugin, refusal }, _)| {
        let filter = profile.plugins.get(usize::from(*plugin))?.filter.as_ref()?;
        let is_of_reserve = filter.is_of_reserve(refusal);
        is_of_reserve.then(|| (*plugin, Rejection::unschedulable(filter.reasons(refusal, cluster))))
    })
}

/// The pod as it requests what it was given.
fn resized(pod: &Arc<Pod>, holds: &Holds) -> Arc<Pod> {
    let Some(resized) = holds.get::<Resized>() else { return Arc::clone(pod) };
    let template = Template { requests: resized.over(&pod.template.requests), ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) })
}
