//! Whose turn it is: the attempt that is made next, and when there is something to attempt.

use std::sync::Arc;

use koord_core::clock::Moment;

use super::{Attempt, Engine, judge::Judged};
use crate::{framework::Orders, pod::Pod, queue::Tried};

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
                for point in profile.each(|plugin| &plugin.next_pod) {
                    point.next_pod_unavailable(&uid, &mut self.cluster, &mut orders);
                }
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
}
