//! An audit of the sums of the engine and of plugins, a few nodes or one plugin at a time: what differs from the objects is reported
//! and set right. What is given to more pods than may have it is only reported.

use std::time::Duration;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    clock::Moment,
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    uid::Uid,
};
use koord_scheduler_engine::{Overallocation, Whose};
use koord_scheduler_framework::cluster::{Mismatch, Subject, Turn};

use super::{COMPONENT, Scheduler};
use crate::observer::Occurrence;

/// How often nodes are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of them at once: 5000 nodes take a little more than a minute.
const ROWS: usize = 64;
/// How many sums are written into the log and reported as events at a time. All are counted.
const REPORTS_MAX: usize = 16;

/// An object as an event names it.
pub(super) type Named = (ResourceKind, ObjectKey, Uid);

/// How far the audit has come.
#[derive(Default)]
pub(super) struct Auditing {
    looked: Option<Moment>,
    next: Turn,
}

impl Scheduler {
    /// Looks at the next nodes, or at what the next plugin sums up of the whole cluster, if that was not done lately.
    pub(super) fn audit(&mut self) {
        if !self.may_look(self.auditing.looked, PERIOD) {
            return;
        }
        self.auditing.looked = Some(self.clock.moment());
        self.is_working = true;
        let (found, next) = self.engine.audit(self.auditing.next, ROWS);
        let overallocations = self.engine.overallocations(self.auditing.next, ROWS);
        self.is_working = false;
        self.auditing.next = next.unwrap_or_default();
        for mismatch in &found {
            self.notify(&Occurrence::SumCorrected(mismatch));
        }
        found.iter().take(REPORTS_MAX).for_each(|mismatch| self.mismatched(mismatch));
        overallocations.iter().take(REPORTS_MAX).for_each(|excess| self.exceeded(excess));
        if next.is_none() {
            self.notify(&Occurrence::AuditCompleted);
        }
    }

    /// A whole round at once: which sums were not what the objects amount to. They are corrected.
    pub fn audit_all(&mut self) -> Vec<Mismatch> {
        // What was under way when the task broke off is begun anew.
        if self.is_working { Vec::new() } else { self.engine.audit_all() }
    }

    fn mismatched(&self, Mismatch { subject, sum, details }: &Mismatch) {
        tracing::error!(?subject, sum, details, "a sum of the scheduling engine was wrong, and is corrected");
        let Some(object) = self.named(subject) else { return };
        let of = if matches!(subject, Subject::Node(_)) { " of the node" } else { "" };
        let message = format!("the scheduler's sum {sum}{of} was wrong and is corrected: {details}");
        self.warn(object, ("Auditing", "SumCorrected"), message);
    }

    /// Something is given to more pods than may have it. Where pods of other schedulers have it too, only the log says so.
    fn exceeded(&self, Overallocation { subject, what, details, whose }: &Overallocation) {
        if *whose == Whose::Others {
            tracing::warn!(?subject, what, details, "something is given twice, and another scheduler is part of it");
            return;
        }
        tracing::error!(?subject, what, details, "something is given to more pods than may have it");
        if let Some(object) = self.named(subject) {
            self.warn(object, ("Auditing", "GivenTwice"), details.clone());
        }
    }

    /// What an audit is about, as an event names it.
    fn named(&self, subject: &Subject) -> Option<Named> {
        match subject {
            Subject::Node(name) => self.node(name),
            Subject::Object { kind, key, uid } => Some((*kind, key.clone(), uid.clone())),
            Subject::Cluster => None,
        }
    }

    /// Whether the engine can be looked at, and was not lately.
    pub(super) fn may_look(&self, looked: Option<Moment>, period: Duration) -> bool {
        let is_early = looked.is_some_and(|looked| self.clock.moment().since(looked) < period);
        !is_early && !self.is_working && self.knows_all
    }

    /// A node as an event names it.
    pub(super) fn node(&self, name: &str) -> Option<Named> {
        let key = ObjectKey::cluster(name);
        let uid = self.feed.nodes.read().get(key.as_str())?.uid.clone();
        Some((ResourceKind::NODE, key, uid))
    }

    /// Warns of an object.
    pub(super) fn warn(
        &self,
        (kind, key, uid): Named,
        (action, reason): (&'static str, &'static str),
        message: String,
    ) {
        let about = Regarded { kind, key, uid };
        self.events.record(COMPONENT, Event::new(about, EventType::Warning, action, reason, message));
    }
}
