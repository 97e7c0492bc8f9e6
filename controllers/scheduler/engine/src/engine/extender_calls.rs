//! Calls of extenders: attempts that wait for a result from outside.
//!
//! Extenders are called about one pod at a time, as by kube-scheduler: those that count what they have given rely on it. Pods without
//! an extender go on meanwhile, so a slow extender delays its own pods alone.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, uid::Uid};
use koord_scheduler_framework::{
    Request,
    extender::{ExtenderArgs, ExtenderResult, ExtenderResults},
    pod::Pod,
};

use super::{Attempt, Engine, Outcome};
use crate::queue::Tried;

/// The pod that an extender is called about, and those that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtenderCallQueue {
    /// How many calls were made.
    calls: u64,
    open: Option<Open>,
    /// By priority, then by when they were to be tried.
    waiting: BTreeMap<(Reverse<i32>, u64), (Uid, Tried)>,
    enqueued: u64,
}

/// An attempt that waits for a result.
#[derive(Clone, Debug)]
struct Open {
    pod: Uid,
    tried: Tried,
    /// When the attempt began.
    began: Moment,
    has_result: bool,
}

impl ExtenderCallQueue {
    /// Forgets all pods. Results that are still to come belong to no call any more.
    pub(super) fn clear(&mut self) {
        *self = Self { calls: self.calls, ..Self::default() };
    }

    /// Whether a call is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether an attempt can be made that waited for a result, or for its turn.
    pub(super) fn has_work(&self) -> bool {
        self.open.as_ref().map_or(!self.waiting.is_empty(), |open| open.has_result)
    }

    /// A pod waits for its turn.
    pub(super) fn enqueue(&mut self, pod: &Pod, tried: Tried) {
        self.enqueued += 1;
        self.waiting.insert((Reverse(pod.template.priority), self.enqueued), (pod.uid.clone(), tried));
    }

    /// A pod is not to be tried any more. Says whether it was waiting here.
    fn forget(&mut self, uid: &Uid) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|_, (known, _)| known != uid);
        let was_open = self.open.take_if(|open| open.pod == *uid).is_some();
        was_open || self.waiting.len() < before
    }

    /// The pod whose turn it is: first the one that a plugin chose.
    fn next(&mut self, next_pod_of_plugins: Option<&Uid>) -> Option<(Uid, Tried)> {
        let key = match next_pod_of_plugins {
            Some(uid) => *self.waiting.iter().find(|(_, (known, _))| known == uid)?.0,
            None => *self.waiting.first_key_value()?.0,
        };
        self.waiting.remove(&key)
    }
}

impl Engine {
    /// The call of this number has a result. The result of a call for which no attempt waits any more changes nothing.
    pub fn extender_call_finished(&mut self, number: u64, result: ExtenderResult) {
        let Some(open) = self.extender_calls.open.as_mut().filter(|_| self.extender_calls.calls == number) else {
            return;
        };
        open.has_result = true;
        if let Some(results) = self.cluster.state_mut::<ExtenderResults>() {
            results.set(&open.pod, result);
        }
    }

    /// Whether no other pod is tried while a call is open, because a plugin chooses which pods follow each other.
    pub(super) fn is_held(&self) -> bool {
        self.extender_calls.is_open() && self.next_pod_of_plugins().is_some()
    }

    /// The pod that a plugin chose to be next.
    pub(super) fn next_pod_of_plugins(&self) -> Option<Uid> {
        let mut points = self.profiles.iter().flat_map(|profile| profile.each(|plugin| &plugin.next_pod));
        points.find_map(|point| point.next_pod(&self.cluster))
    }

    /// Whether extenders may be called about a pod.
    pub(super) fn may_call_extenders(&self, index: usize, pod: &Pod) -> bool {
        let profile = self.profiles.get(index);
        profile.is_some_and(|profile| profile.each(|plugin| &plugin.extender_calls).any(|point| point.may_call(pod)))
    }

    /// The attempt whose result is there, or the first one of those that wait for their turn.
    pub(super) fn resume_after_extender(&mut self, now: Moment) -> Option<Attempt> {
        while self.extender_calls.has_work() {
            let (uid, tried, began) = match self.extender_calls.open.take() {
                Some(Open { pod, tried, began, .. }) => (pod, tried, began),
                None => self
                    .extender_calls
                    .next(self.next_pod_of_plugins().as_ref())
                    .map(|(uid, tried)| (uid, tried, now))?,
            };
            let pod = self.cluster.pending_pod(&uid).filter(|pod| !pod.deleting).cloned();
            let index = pod.as_ref().and_then(|pod| self.profile_of(pod));
            let (Some(pod), Some(index)) = (pod, index) else {
                self.clear_extender_results();
                self.queue.done(&uid);
                continue;
            };
            let mut attempt = self.schedule_one(index, pod, tried, now);
            attempt.began = began;
            match &mut self.extender_calls.open {
                Some(open) => open.began = began,
                None => self.clear_extender_results(),
            }
            return Some(attempt);
        }
        None
    }

    /// Whether extenders are to be called about the nodes that take a pod before one of them is chosen.
    pub(super) fn calls_extenders(&self, request: &Request<'_>) -> bool {
        request.each(|plugin| &plugin.extender_calls).any(|point| point.calls(request, &self.cluster))
    }

    /// The attempt ends with a call, and is made again with the result.
    pub(super) fn call_extenders(&mut self, pod: &Arc<Pod>, tried: Tried, args: ExtenderArgs, now: Moment) -> Outcome {
        self.cluster.include_all();
        self.extender_calls.calls += 1;
        self.extender_calls.open = Some(Open { pod: pod.uid.clone(), tried, began: now, has_result: false });
        Outcome::ExtenderCall { number: self.extender_calls.calls, args }
    }

    pub(super) fn clear_extender_results(&mut self) {
        if let Some(results) = self.cluster.state_mut::<ExtenderResults>() {
            *results = ExtenderResults::default();
        }
    }

    /// A pod is bound or gone: no extender is called about it any more.
    pub(super) fn cancel_extender_call(&mut self, uid: &Uid) {
        if !self.extender_calls.forget(uid) {
            return;
        }
        self.queue.done(uid);
        if !self.extender_calls.is_open() {
            self.clear_extender_results();
        }
    }
}
