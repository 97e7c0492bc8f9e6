//! What becomes of decisions: writes that have ended, and pods that were refused.

use std::sync::Arc;

use koord_engine::{
    engine::{Attempt, Outcome, Refused},
    plugin::Explanation,
    pod::Pod,
};
use koord_runtime::error::{Fault, ReconcileError};

use super::{
    COMPONENT, Next, Scheduler,
    prepare::plugin_of,
    work::{Purpose, Work, bind, evict, subject},
};
use crate::{feed::Said, metrics::Ended, report};

impl Scheduler {
    /// A write has ended.
    pub fn written(&mut self, work: Work, result: Result<(), ReconcileError>) {
        // What waited for this write is sent before anything that follows from it.
        let sent = self.in_flight.remove(&subject(&work.write));
        if let (Some(sent), Some(measures), Some((point, pod))) = (&sent, &self.measures, work.purpose.part()) {
            let took = self.clock.moment().since(sent.since);
            measures.part((point, result.is_ok()), &pod.template.scheduler, took);
        }
        self.further.extend(sent.into_iter().flat_map(|sent| sent.after));
        match (work.purpose, result) {
            (Purpose::Prepare(attempt, index), Ok(())) => {
                let next = self.prepare(attempt, index + 1);
                self.further.extend(next);
            }
            (Purpose::Prepare(attempt, index), Err(error)) => {
                let message = format!("running PreBind plugin {:?}: {error}", plugin_of(&attempt, index));
                self.prepare_failed(&attempt, message);
            }
            (Purpose::Lock(..), Ok(())) => self.preparing.is_due = true,
            (Purpose::Lock(plugin, uid), Err(error)) => {
                self.not_prepared(&uid, format!("running PreBind plugin {plugin:?}: {error}"));
            }
            (Purpose::Give(attempt), Ok(())) => {
                let work = self.bind(attempt);
                self.further.push_back(work);
            }
            (Purpose::BindBy(webhook, attempt), Err(error)) if webhook.extender.is_ignorable => {
                tracing::warn!(%error, extender = webhook.extender.url, "an extender is passed over");
                self.further.push_back(bind(attempt));
            }
            (Purpose::Bind(attempt) | Purpose::BindBy(_, attempt), result) => self.bound(attempt, result),
            (Purpose::Give(attempt), Err(error)) => {
                self.bind_failed(&attempt, &error);
            }
            (Purpose::Keep, result) => self.kept(&work.write, &result),
            (Purpose::Explain, Ok(())) => {}
            (Purpose::Explain, Err(error)) => {
                tracing::debug!(%error, "the condition of a pod could not be written");
            }
            (Purpose::Condemn { victim, message }, Ok(())) => self.further.push_back(evict(victim, message)),
            (Purpose::Evict { victim, message }, Ok(())) => {
                self.events.record(COMPONENT, report::preempted(&victim, message));
            }
            (Purpose::Condemn { victim, .. } | Purpose::Evict { victim, .. }, Err(error)) => {
                tracing::warn!(%error, pod = %victim.key, "a pod could not be evicted");
                self.engine.eviction_failed(&victim.uid, self.clock.moment());
            }
        }
    }

    /// A write has ended in a panic: nobody knows which, or what has become of it.
    pub(crate) fn write_lost(&mut self) {
        self.in_flight.clear();
        self.is_working = true;
    }

    fn bound(&mut self, attempt: Box<Attempt>, result: Result<(), ReconcileError>) {
        let now = self.clock.moment();
        let Outcome::Bind { node, .. } = &attempt.outcome else { return };
        match result {
            Ok(()) => self.scheduled(&attempt, node),
            // The answer to an earlier try was lost, and this is what it was.
            Err(error) if error.stale && error.message.contains(&format!("is already assigned to node {node:?}")) => {
                self.scheduled(&attempt, node);
            }
            Err(error) if is_doubtful(&error) => {
                self.doubts += 1;
                let after = error.retry.wished().unwrap_or(Self::DOUBT);
                self.doubtful.insert((now + after, self.doubts), attempt);
            }
            Err(error) => self.bind_failed(&attempt, &error),
        }
    }

    fn scheduled(&mut self, attempt: &Attempt, node: &str) {
        for event in report::scheduled(&attempt.pod, node) {
            self.events.record(COMPONENT, event);
        }
        self.ended(attempt, Ended::Scheduled);
    }

    pub(super) fn bind_failed(&mut self, attempt: &Attempt, error: &ReconcileError) {
        self.events.record(COMPONENT, report::failed(&attempt.pod, &format!("binding rejected: {error}")));
        self.ended(attempt, Ended::Failed);
        self.engine.bind_failed(attempt, self.clock.moment());
    }

    /// Records why a pod has no node, and evicts others where that makes room. The condition is written where it does not
    /// say so already.
    pub(super) fn refused(&mut self, attempt: &Attempt, refused: &Refused) -> Next {
        self.ended(attempt, if refused.is_error { Ended::Failed } else { Ended::Unschedulable });
        if let Some(measures) = &self.measures {
            measures.refused(refused);
        }
        self.explain(&attempt.pod, refused, None);
        self.further.pop_front().map_or(Next::Attempted, Next::Send)
    }

    /// Writes why a pod has no node. `expected` is the node that its status may name by a write that is not seen yet.
    pub(super) fn explain(&mut self, pod: &Arc<Pod>, refused: &Refused, expected: Option<&Arc<str>>) {
        let Refused { message, nominated, victims, preemptor, is_error, .. } = refused;
        self.events.record(COMPONENT, report::failed(pod, message));
        for victim in victims {
            let node = victim.node.as_deref().or(nominated.as_deref()).unwrap_or_default();
            let message = format!("Preempted by pod {} on node {node}", pod.uid);
            let write = report::condemned(victim, pod, preemptor.as_deref(), self.clock.now());
            self.further.push_back(Work { write, purpose: Purpose::Condemn { victim: Arc::clone(victim), message } });
        }
        let Explanation { write, events } = self.engine.explanation(pod, message);
        for (reason, message) in events {
            self.events.record(COMPONENT, report::remark(pod, reason, &message));
        }
        if pod.is_reservation() {
            self.further.extend(write.map(|write| Work { write, purpose: Purpose::Explain }));
            return;
        }
        let said = self.feed.pods.said(pod);
        let said = said.map(|said| Said { nominated: expected.cloned().or(said.nominated), ..said });
        let is_new =
            |said: &Said| said.unscheduled.as_deref() != Some(message.as_str()) || said.nominated != *nominated;
        if let Some(said) = said.filter(is_new) {
            let reason = if *is_error { "SchedulerError" } else { "Unschedulable" };
            let nominated = (said.nominated.as_deref(), nominated.as_deref());
            let write = report::unscheduled(pod, (reason, message), nominated, self.clock.now());
            self.further.push_back(Work { write, purpose: Purpose::Explain });
        }
    }
}

/// Whether the write may have arrived all the same.
fn is_doubtful(error: &ReconcileError) -> bool {
    error.fault == Fault::Api && !error.stale
}
