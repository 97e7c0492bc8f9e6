//! Waiting pods: labels and annotations that are ignored, or that cannot be decoded and keep the pod waiting.

use std::sync::Arc;

use koord_scheduler_framework::{ReasonCode, pod::Pod};
use koord_types::{
    catalogue,
    gang::{DEPRECATED_MIN_AVAILABLE, MIN_AVAILABLE},
};

use super::{ROWS, findings_in, reported::Part, unreadable};
use crate::{
    feed::PodStatus,
    report,
    scheduler::{
        COMPONENT, Scheduler,
        work::{Purpose, Work, subject},
    },
};

impl Scheduler {
    /// Checks the next waiting pods.
    pub(super) fn report_on_waiting(&mut self) {
        self.writes.conditions.forget_idle(self.clock.moment());
        let from = self.ignored.waiting;
        let page = self.engine.queue().refusals().skip(from).take(ROWS);
        // No plugin stops a pod whose attempt ended in an error. What a Reservation itself says is reported of the object.
        let page = page.map(|(pod, by)| (Arc::clone(pod), !by.is_empty() || !pod.is_reservation()));
        let page: Vec<(Arc<Pod>, bool)> = page.collect();
        self.ignored.waiting = if page.len() < ROWS { 0 } else { from + ROWS };
        for (pod, _) in page.iter().filter(|(_, is_looked_at)| *is_looked_at) {
            self.report_on_waiting_pod(pod);
        }
    }

    fn report_on_waiting_pod(&mut self, pod: &Arc<Pod>) {
        const EFFECT: &str = "cannot be read, and the pod waits until it is corrected";
        // The minimum of a gang counts only where nothing else declares the gang. Its members are not tried then.
        let held = self.engine.not_tried(pod);
        let is_undeclared = held.as_ref().is_some_and(|(_, reason)| matches!(reason.code, ReasonCode::GangUndeclared));
        let texts = pod.template.labels.iter().chain(pod.template.annotations.iter()).chain(pod.given.iter());
        let (mut holding, mut others) = (Vec::new(), Vec::new());
        for (name, text) in texts {
            match catalogue::find(name).map(|entry| entry.check(text)) {
                Some(Err(error)) if is_minimum(name) && is_undeclared => holding.push(unreadable(error, EFFECT)),
                // The attempt has said it, in the original's words.
                Some(Err(_)) if !is_minimum(name) && catalogue::refuses_pod(name) => {}
                _ => others.extend(findings_in(name, text)),
            }
        }
        if let Some((_, reason)) = held.filter(|_| holding.is_empty()) {
            self.report_on_gang(pod, &reason);
        }
        // It is compared with the condition that the pod has: a write that failed is sent again, after a pause that grows.
        if !holding.is_empty() && !pod.is_reservation() {
            self.write_condition(pod, &holding.join("; "));
        }
        let all: Vec<String> = holding.iter().chain(&others).cloned().collect();
        if !self.ignored.reported.is_new(Part::Spec, &pod.uid, &all) {
            return;
        }
        for message in &holding {
            self.events.record(COMPONENT, report::failed(pod, message));
        }
        let (kind, key) = report::subject(pod);
        self.report_all(&(kind, key.clone(), pod.uid.clone()), others);
    }

    fn write_condition(&mut self, pod: &Pod, message: &str) {
        let Some(PodStatus { unscheduled, nominated, generation }) = self.feed.pods.status(pod) else { return };
        if unscheduled.as_deref() == Some(message) {
            return;
        }
        let since = unscheduled.is_none().then(|| self.clock.now());
        let nominated = (nominated.as_deref(), nominated.as_deref());
        let write = report::unscheduled((pod, generation), ("Unschedulable", message), nominated, since);
        let (object, message) = (subject(&write), message.to_owned());
        if !self.writes.in_flight.contains_key(&object)
            && self.writes.conditions.begins(&object, &message, self.clock.moment())
        {
            self.write_in_background(Work { write, purpose: Purpose::Held });
        }
    }
}

/// Whether a text under this name is the minimum of a gang.
fn is_minimum(name: &str) -> bool {
    [MIN_AVAILABLE.name(), DEPRECATED_MIN_AVAILABLE.name()].contains(&name)
}
