//! Why a pod is where it is, or nowhere.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, uid::Uid};
use koord_scheduler_framework::{
    AttemptState, Reason, ReasonCode, Rejection, Request,
    columns::Row,
    cycle::{CandidateCache, OnNode},
    pod::Pod,
};

use super::{CurrentAttempt, Engine, Outcome, Tried, latency::Latencies, verdicts::Verdicts};

/// What an engine says about one pod, and what it would do.
#[derive(Clone, Debug)]
pub struct Why {
    pub pod: Arc<Pod>,
    /// The node that it has.
    pub node: Option<Arc<str>>,
    /// What is decided about it; the reason where no profile is responsible for it.
    pub decision: Result<Decision, Reason>,
}

/// What the plugins of a profile say about a pod.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The plugin that keeps it from being tried, and why.
    pub held: Option<(&'static str, Reason)>,
    /// The plugin that rejects it as a whole, and why.
    pub rejected: Option<(&'static str, Rejection)>,
    /// What plugins remark about it, though they do not refuse it for that.
    pub remarks: Vec<(&'static str, Reason)>,
    /// What is said about every node. A pod that has one is looked at as if it had none.
    pub nodes: Vec<OnNode>,
    /// What came of an attempt; none for a pod that has a node or is kept from being tried.
    pub outcome: Option<Outcome>,
}

impl Engine {
    /// A copy on which something can be tried.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            queue: self.queue.clone(),
            profiles: self.profiles.clone(),
            candidate_caches: self.profiles.iter().map(|_| CandidateCache::default()).collect(),
            waiting: self.waiting.clone(),
            ready: self.ready.clone(),
            random: self.random.clone(),
            has_changed: self.has_changed,
            jobs: self.jobs.clone(),
            verdicts: Verdicts::default(),
            extender_calls: self.extender_calls.clone(),
            latencies: Latencies::default(),
            skipped: Vec::new(),
            overallocations: self.overallocations.clone(),
            // What is tried here is not what is being decided.
            current_attempt: CurrentAttempt::default(),
        }
    }

    /// What an attempt to place a pod that has no node would bring; none where it is kept from being tried. The engine is used
    /// up: what was tried stays in it.
    pub fn would(mut self, uid: &Uid, now: Moment) -> Option<Outcome> {
        self.attempt_for(uid, now)
    }

    /// Attempts to place a pod that has no node, before all others; `None` where it is kept from being tried. What was tried stays in the engine.
    pub fn attempt_for(&mut self, uid: &Uid, now: Moment) -> Option<Outcome> {
        let pod = Arc::clone(self.cluster.pending_pod(uid)?);
        let index = self.profile_of(&pod)?;
        let may_be_tried = self.held(index, &pod).is_none();
        may_be_tried.then(|| self.schedule_one(index, pod, Tried::default(), now).outcome)
    }

    /// What attempts to place these pods one after the other would bring; nothing for those that have a node or are kept from being
    /// tried. The engine is used up: what was tried stays in it.
    pub fn would_all(mut self, uids: &[Uid], now: Moment) -> BTreeMap<Uid, Outcome> {
        let mut outcomes = BTreeMap::new();
        self.ready.clear();
        for uid in uids {
            let Some(pod) = self.cluster.pending_pod(uid).map(Arc::clone) else { continue };
            let Some(index) = self.profile_of(&pod) else { continue };
            if self.held(index, &pod).is_none() {
                let attempt = self.schedule_one(index, pod, Tried::default(), now);
                outcomes.insert(uid.clone(), attempt.outcome);
                // Others may have waited for this one.
                let released = std::mem::take(&mut self.ready).into_iter();
                outcomes.extend(released.map(|attempt| (attempt.pod.uid.clone(), attempt.outcome)));
            }
        }
        outcomes
    }

    /// The nodes that pods would get in at most so many attempts, in the order of the queue. The engine is used up.
    pub fn rounds(mut self, attempts_max: usize, now: Moment) -> BTreeMap<Uid, Arc<str>> {
        let mut placed = BTreeMap::new();
        for attempt in std::iter::from_fn(|| self.attempt(now)).take(attempts_max) {
            match attempt.outcome {
                Outcome::Bind { node, .. } => _ = placed.insert(attempt.pod.uid.clone(), node),
                Outcome::Waiting { .. } | Outcome::Refused(_) | Outcome::ExtenderCall { .. } => {
                    placed.remove(&attempt.pod.uid);
                }
            }
        }
        placed
    }

    /// What is said about a pod, and what an attempt would bring. The engine is used up: what was tried stays in it.
    pub fn why(mut self, uid: &Uid, now: Moment) -> Option<Why> {
        let (pod, row) = self.pod(uid)?;
        let node = row.and_then(|row| self.cluster.node(row)).map(|node| Arc::clone(&node.name));
        let decision = match self.profile_of(&pod) {
            Some(index) => Ok(self.decide(index, &pod, node.is_some(), now)),
            None => Err(self.mismatch(&pod)),
        };
        Some(Why { pod, node, decision })
    }

    /// What is said about every node for a pod, as if it had none; none where no profile is responsible for it. The engine is used up.
    pub fn on_nodes(mut self, uid: &Uid) -> Option<Vec<OnNode>> {
        let (pod, _) = self.pod(uid)?;
        let index = self.profile_of(&pod)?;
        Some(self.say(index, &pod).nodes)
    }

    /// A pod, with its row.
    fn pod(&self, uid: &Uid) -> Option<(Arc<Pod>, Option<Row>)> {
        let placed = self.cluster.pod(uid).map(|placed| (Arc::clone(&placed.pod), Some(placed.row)));
        placed.or_else(|| Some((Arc::clone(self.cluster.pending_pod(uid)?), None)))
    }

    /// Why a pod is not tried that waits; none where it is, or waits no more.
    pub fn not_tried(&self, pod: &Pod) -> Option<(&'static str, Reason)> {
        let pod = self.cluster.pending_pod(&pod.uid)?;
        let Some(index) = self.profile_of(pod) else { return Some(("", self.mismatch(pod))) };
        self.held(index, pod)
    }

    /// The plugin of a profile that keeps a pod from being tried, and why.
    fn held(&self, index: usize, pod: &Pod) -> Option<(&'static str, Reason)> {
        let mut plugins = self.profiles[index].plugins.iter();
        plugins.find_map(|plugin| {
            let reason = plugin.pre_enqueue.as_ref()?.pre_enqueue(pod, &self.cluster).err()?;
            Some((plugin.name(), reason))
        })
    }

    /// Why a pod is left to another scheduler.
    fn mismatch(&self, pod: &Pod) -> Reason {
        let profile_names: Vec<&str> = self.profiles.iter().map(|profile| &*profile.scheduler).collect();
        let name = &*pod.template.scheduler;
        let reason = ReasonCode::SchedulerMismatch.reason(format!("its schedulerName is {name:?}"));
        reason.with("schedulerName", name).with("profiles", profile_names.join(" "))
    }

    fn decide(&mut self, index: usize, pod: &Arc<Pod>, has_node: bool, now: Moment) -> Decision {
        let decision = self.say(index, pod);
        let is_tried = decision.held.is_none() && !has_node;
        let outcome = is_tried.then(|| self.schedule_one(index, Arc::clone(pod), Tried::default(), now).outcome);
        Decision { outcome, ..decision }
    }

    /// What is said about a pod, without an attempt.
    fn say(&mut self, index: usize, pod: &Arc<Pod>) -> Decision {
        let profile = Arc::clone(&self.profiles[index]);
        self.cluster.exclude_pod(&pod.uid);
        let state = &AttemptState::default();
        self.restore_reservations(&profile, pod, state);
        self.cluster.exclude_all();
        let class = self.cluster.class(&pod.template);
        let request = Request { pod, class: &class, plugins: &profile.plugins, state };
        let held = self.held(index, pod);
        let rejected = profile.admit(&request, &self.cluster);
        let rejected = rejected.or_else(|| profile.unnamed(&request, &self.cluster));
        let rejected = rejected.map(|(plugin, rejection)| (profile.name_of(plugin), rejection));
        let remarks = profile.plugins.iter().flat_map(|plugin| {
            let remarks = plugin.diagnostics.as_ref().map(|point| point.remarks(&request, &self.cluster));
            remarks.into_iter().flatten().map(|remark| (plugin.name(), remark))
        });
        let remarks = remarks.collect();
        let nodes = profile.everywhere(&request, &self.cluster);
        self.cluster.include_all();
        Decision { held, rejected, remarks, nodes, outcome: None }
    }
}
