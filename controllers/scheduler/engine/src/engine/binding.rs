//! The binding of a pod that is in its place: what is written with it, and what follows where it fails.

use std::sync::Arc;

use koord_core::clock::Moment;

use super::{Attempt, Engine, Outcome, judge::Judged, waiting::Waiting};
use crate::{
    event::Event,
    framework::{Orders, Patch, PreBindProgress, Request},
    pod::Pod,
    queue::{Return, Tried},
    timing::Point,
};

impl Engine {
    /// The binding of a pod that is in its place.
    pub(super) fn bind(&mut self, bind: &Waiting) -> Outcome {
        let Waiting { pod, node, score, ties, .. } = bind;
        self.queue.done(&pod.uid);
        let (mut patch, mut instead) = (Patch::default(), None);
        let profile = self.profile_of(pod).and_then(|index| self.profiles.get(index));
        if let (Some(placed), Some(profile)) = (self.cluster.pod(&pod.uid), profile) {
            let request = Request { pod, class: &placed.class, plugins: &profile.plugins };
            for (_, plugin) in profile.among(&profile.pre_binds) {
                let Some(point) = &plugin.pre_bind else { continue };
                let write = || point.pre_bind(&request, placed, &self.cluster, &mut patch);
                self.laps.call(plugin, Point::PreBind, write);
            }
            instead = profile.plugins.iter().find_map(|plugin| {
                let write = plugin.bind.as_ref()?.bind(&request, placed, &self.cluster)?;
                Some((plugin.name(), write))
            });
        }
        Outcome::Bind { node: Arc::clone(node), score: *score, ties: *ties, patch, instead }
    }

    /// Whether what was written before the binding of an attempt has taken effect. None where the pod is not assumed to be
    /// there any more: it was deleted, or bound by somebody else.
    pub fn prepared(&self, attempt: &Attempt) -> Option<PreBindProgress> {
        let placed = self.cluster.pod(&attempt.pod.uid).filter(|placed| placed.pod.node.is_none())?;
        let profile = self.profiles.get(self.profile_of(&attempt.pod)?)?;
        let mut result = PreBindProgress::Done;
        for plugin in &profile.plugins {
            let Some(point) = &plugin.pre_bind else { continue };
            let words = |words: String| format!("running PreBind plugin {:?}: {words}", plugin.name());
            match point.pre_bind_progress(placed, &self.cluster) {
                PreBindProgress::Pending(timeout) if result == PreBindProgress::Done => {
                    result = PreBindProgress::Pending(words(timeout))
                }
                PreBindProgress::Done | PreBindProgress::Pending(_) => {}
                write @ PreBindProgress::Write(..) => result = write,
                PreBindProgress::Failed(why) => return Some(PreBindProgress::Failed(words(why))),
            }
        }
        Some(result)
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

    /// Takes a pod from its place that is not to be bound, and puts it back into the queue. Its own absence does not help it.
    pub(super) fn unreserve(&mut self, pod: &Arc<Pod>, tried: Tried, why: Return, helps_others: bool, now: Moment) {
        let Some(placed) = self.cluster.remove_pod(&pod.uid) else { return };
        let mut orders = Orders::default();
        if let Some(profile) = self.profile_of(pod).map(|index| Arc::clone(&self.profiles[index])) {
            for (_, plugin) in profile.among(&profile.reserves).rev() {
                if let Some(point) = &plugin.reserve {
                    point.unreserve(&placed, &mut self.cluster, &mut orders);
                }
            }
        }
        let judge = Judged { profiles: &self.profiles, cluster: &self.cluster };
        self.queue.give_back(Arc::clone(pod), tried, why, now, &judge);
        if helps_others {
            self.queue.notify_others(&Event::PodRemoved(placed.pod), Some(&pod.uid), now, &judge);
        }
        self.carry_out(orders, now);
    }
}
