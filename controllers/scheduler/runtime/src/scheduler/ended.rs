//! What becomes of decisions: writes that have ended, and pods that were refused.

use std::sync::Arc;

use koord_runtime::{
    clock::Moment,
    error::{Fault, ReconcileError},
};
use koord_scheduler_engine::{Attempt, Outcome, Refused};
use koord_scheduler_framework::{Explanation, pod::Pod};

use super::{
    COMPONENT, Next, Scheduler,
    prepare::plugin_of,
    work::{Purpose, Work, bind, evict, is_bound_already, plugin_that_binds, subject},
    writes::Unconfirmed,
};
use crate::{
    feed::PodStatus,
    observer::{Ended, Occurrence},
    report,
};

impl Scheduler {
    /// A write has ended.
    pub fn written(&mut self, work: Work, result: Result<(), ReconcileError>) {
        // What waited for this write is sent before anything that follows from it.
        let sent = self.writes.in_flight.remove(&subject(&work.write));
        if let (Some(sent), Some((point, pod))) = (&sent, work.purpose.part()) {
            let (scheduler, took) = (&*pod.template.scheduler, self.clock.moment().since(sent.since));
            self.notify(&Occurrence::PartEnded { point, is_success: result.is_ok(), scheduler, took });
        }
        self.writes.follow_ups.extend(sent.into_iter().flat_map(|sent| sent.after));
        match (work.purpose, result) {
            (Purpose::Prepare(attempt, index), Ok(())) => {
                let next = self.prepare(attempt, index + 1);
                self.writes.follow_ups.extend(next);
            }
            (Purpose::Prepare(attempt, index), Err(error)) if is_unserved(&error) => {
                self.bind_again(&error, Unconfirmed::Prepare(attempt, index));
            }
            (Purpose::Prepare(attempt, index), Err(error)) => {
                let message = format!("running PreBind plugin {:?}: {error}", plugin_of(&attempt, index));
                self.not_bound(&attempt, message);
            }
            (Purpose::Lock(..), Ok(())) => self.writes.preparing.is_due = true,
            (Purpose::Lock(plugin, uid), Err(error)) => {
                self.not_prepared(&uid, format!("running PreBind plugin {plugin:?}: {error}"));
            }
            (Purpose::Give(attempt, answered), Ok(())) => {
                let work = self.bind_after(attempt, answered.get().map(|answered| &**answered));
                self.writes.follow_ups.push_back(work);
            }
            (Purpose::BindBy(webhook, attempt), Err(error)) if webhook.extender.is_ignorable => {
                tracing::warn!(%error, extender = webhook.extender.url, "an extender is passed over");
                self.writes.follow_ups.push_back(bind(attempt));
            }
            (Purpose::Bind(attempt), result) => {
                let by = format!("running Bind plugin {:?}: ", plugin_that_binds(&attempt));
                self.bound(attempt, &by, result);
            }
            (Purpose::BindBy(_, attempt), result) => self.bound(attempt, "", result),
            (Purpose::Give(attempt, _), Err(error)) if is_unserved(&error) => {
                self.bind_again(&error, Unconfirmed::Give(attempt));
            }
            (Purpose::Give(attempt, _), Err(error)) => {
                self.bind_failed(&attempt, "running PreBindExtension plugin \"DefaultPreBind\": ", &error);
            }
            (Purpose::Keep | Purpose::Hurry, result) => self.status_update_ended(&work.write, &result),
            (purpose @ (Purpose::Explain | Purpose::Expect | Purpose::Held), result) => {
                if matches!(purpose, Purpose::Held) {
                    self.writes.conditions.ended(&subject(&work.write), result.is_ok(), self.clock.moment());
                }
                if let Err(error) = result {
                    tracing::debug!(%error, "the condition of a pod could not be written");
                }
            }
            (Purpose::Condemn { victim, preemptor, message }, Ok(())) => {
                self.writes.follow_ups.push_back(evict(victim, preemptor, message));
            }
            (Purpose::Evict { victim, preemptor, message }, Ok(())) => {
                self.events.record(COMPONENT, report::preempted(&victim, &preemptor, message));
            }
            (Purpose::Condemn { victim, .. } | Purpose::Evict { victim, .. }, Err(error)) => {
                tracing::warn!(%error, pod = %victim.key, "a pod could not be evicted");
                self.notify(&Occurrence::EvictionFailed(&victim.uid));
                self.engine.eviction_failed(&victim.uid, self.clock.moment());
            }
        }
    }

    /// A write has panicked: it is unknown which, and whether it has arrived.
    pub(crate) fn write_lost(&mut self) {
        self.writes.in_flight.clear();
        self.is_working = true;
    }

    /// The request to bind a pod has ended. `by` begins what is said of an error.
    pub(super) fn bound(&mut self, attempt: Box<Attempt>, by: &str, result: Result<(), ReconcileError>) {
        let now = self.clock.moment();
        let Outcome::Bind { node, .. } = &attempt.outcome else { return };
        match result {
            Ok(()) => self.scheduled(&attempt, node),
            // The answer to an earlier try was lost, and this is what it was.
            Err(error) if error.stale && error.message.contains(&format!("is already assigned to node {node:?}")) => {
                self.scheduled(&attempt, node);
            }
            // Others have changed it: it is bound as it is known then. Tries end with the Reservation, for which no pod stands any more.
            Err(error) if error.stale && attempt.pod.is_reservation() => {
                self.bind_later(now + Self::CONFLICT, Unconfirmed::Bind(attempt));
            }
            Err(error) if may_have_arrived(&error) => self.bind_again(&error, Unconfirmed::Bind(attempt)),
            Err(error) => self.bind_failed(&attempt, by, &error),
        }
    }

    /// Tries a binding again whose write the API server could not serve, or of which it is unknown whether it has arrived.
    fn bind_again(&mut self, error: &ReconcileError, unconfirmed: Unconfirmed) {
        self.bind_later(self.clock.moment() + error.retry.wished().unwrap_or(Self::DOUBT), unconfirmed);
    }

    fn bind_later(&mut self, at: Moment, unconfirmed: Unconfirmed) {
        self.writes.unconfirmed_ever += 1;
        self.writes.unconfirmed.insert((at, self.writes.unconfirmed_ever), unconfirmed);
    }

    /// The time of a binding that is tried again has come.
    pub(super) fn again(&mut self, unconfirmed: Unconfirmed) -> Next {
        let (Unconfirmed::Prepare(attempt, _) | Unconfirmed::Give(attempt) | Unconfirmed::Bind(attempt)) = &unconfirmed;
        if is_bound_already(attempt, self.engine.cluster()) {
            let (Unconfirmed::Prepare(attempt, _) | Unconfirmed::Give(attempt) | Unconfirmed::Bind(attempt)) =
                unconfirmed;
            self.bound(attempt, "", Ok(()));
            return Next::Attempted;
        }
        match unconfirmed {
            Unconfirmed::Prepare(attempt, index) => self.prepare(attempt, index).map_or(Next::Attempted, Next::Send),
            Unconfirmed::Give(attempt) => Next::Send(self.give_or_bind(attempt)),
            Unconfirmed::Bind(attempt) => Next::Send(self.bind(attempt)),
        }
    }

    fn scheduled(&mut self, attempt: &Attempt, node: &str) {
        for event in report::scheduled(&attempt.pod, node) {
            self.events.record(COMPONENT, event);
        }
        self.notify(&Occurrence::Ended { attempt, how: Ended::Scheduled });
    }

    /// A write that binds a pod was refused. Of a pod that is not as it is known here nothing is written into its status: it is gone, or
    /// has another node.
    fn bind_failed(&mut self, attempt: &Attempt, by: &str, error: &ReconcileError) {
        let message = format!("{by}{error}");
        if !error.stale || attempt.pod.is_reservation() {
            return self.not_bound(attempt, message);
        }
        self.abandoned(attempt);
        if self.engine.bind_failed(attempt, self.clock.moment()) {
            self.events.record(COMPONENT, report::failed(&attempt.pod, &message));
        }
    }

    /// Whether a write is part of the binding of a pod that has ended or is gone since: it gave back what it was to use.
    pub(super) fn comes_too_late(&self, work: &Work) -> bool {
        work.purpose.binding().is_some_and(|attempt| self.engine.cluster().pod(&attempt.pod.uid).is_none())
    }

    /// What is left of such a binding is not sent.
    pub(super) fn give_up(&mut self, work: &Work) {
        if let Some(attempt) = work.purpose.binding() {
            self.abandoned(attempt);
        }
    }

    /// An attempt that had found a node binds the pod no more.
    fn abandoned(&mut self, attempt: &Attempt) {
        self.notify(&Occurrence::Ended { attempt, how: Ended::Failed });
    }

    /// A pod that had its place is not bound, and is tried again. Nothing is said of a pod that was bound or deleted by others meanwhile.
    pub(super) fn not_bound(&mut self, attempt: &Attempt, message: String) {
        self.abandoned(attempt);
        if self.engine.bind_failed(attempt, self.clock.moment()) {
            self.explain(&attempt.pod, &Refused { message, is_error: true, ..Refused::default() });
        }
    }

    /// Records why a pod has no node, and evicts its victims. The condition is written where it does not
    /// say so already.
    pub(super) fn refused(&mut self, attempt: &Attempt, refused: &Refused) -> Next {
        let how = if refused.is_error { Ended::Failed } else { Ended::Unschedulable };
        self.notify(&Occurrence::Ended { attempt, how });
        self.explain(&attempt.pod, refused);
        self.writes.follow_ups.pop_front().or_else(|| self.next_in_background()).map_or(Next::Attempted, Next::Send)
    }

    /// Writes why a pod has no node, and its nominated node.
    fn explain(&mut self, pod: &Arc<Pod>, refused: &Refused) {
        let Refused { message, nominated, victims, preemptor, withdrawn, is_error, .. } = refused;
        self.events.record(COMPONENT, report::failed(pod, message));
        let preempted = |victim: &Pod| {
            let node = victim.node.as_deref().or(nominated.as_deref()).unwrap_or_default();
            format!("Preempted by pod {} on node {node}", pod.uid)
        };
        for victim in withdrawn {
            self.events.record(COMPONENT, report::preempted(victim, pod, preempted(victim)));
        }
        for victim in victims {
            let message = preempted(victim);
            let generation = self.feed.pods.status(victim).map_or(0, |status| status.generation);
            let write = report::condemned((victim, generation), pod, preemptor.as_deref(), self.clock.now());
            let (victim, preemptor) = (Arc::clone(victim), Arc::clone(pod));
            self.writes.follow_ups.push_back(Work { write, purpose: Purpose::Condemn { victim, preemptor, message } });
        }
        let Explanation { write, events } = self.engine.explanation(pod, message);
        for (reason, message) in events {
            self.events.record(COMPONENT, report::remark(pod, reason, &message));
        }
        if pod.is_reservation() {
            if let Some(write) = write {
                self.write_in_background(Work { write, purpose: Purpose::Explain });
            }
            return;
        }
        let Some(PodStatus { unscheduled, nominated: known, generation }) = self.feed.pods.status(pod) else { return };
        if unscheduled.as_deref() != Some(message.as_str()) || known != *nominated {
            let reason = if *is_error { "SchedulerError" } else { "Unschedulable" };
            let since = unscheduled.is_none().then(|| self.clock.now());
            let nominated = (known.as_deref(), nominated.as_deref());
            let write = report::unscheduled((pod, generation), (reason, message), nominated, since);
            self.write_in_background(Work { write, purpose: Purpose::Explain });
        }
    }
}

/// Whether the API server could not serve a write, which may have arrived all the same.
pub(super) fn may_have_arrived(error: &ReconcileError) -> bool {
    error.fault == Fault::Api && !error.stale
}

/// The same, except for a webhook in its way that does not answer: that may last, and an event of the pod reports it.
fn is_unserved(error: &ReconcileError) -> bool {
    may_have_arrived(error) && !error.message.contains("failed calling webhook")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_the_server_could_not_serve_may_have_arrived() {
        let failed = |fault| ReconcileError::new(fault, "the server is shutting down");
        assert!(may_have_arrived(&failed(Fault::Api)) && is_unserved(&failed(Fault::Api)));
        assert!(!may_have_arrived(&failed(Fault::User)) && !may_have_arrived(&failed(Fault::Api).of_stale_cache()));
        let webhook = ReconcileError::new(Fault::Api, "failed calling webhook \"a.example.com\"");
        assert!(may_have_arrived(&webhook) && !is_unserved(&webhook), "that may last");
    }
}
