//! An audit of the sums of the engine and of plugins, a few nodes or one plugin at a time: what differs from the objects is reported
//! and set right.

use std::time::Duration;

use koord_engine::cluster::{Mismatch, Subject, Turn};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    clock::Moment,
    events::{Event, EventType},
    key::ObjectKey,
};

use super::{COMPONENT, Scheduler};

/// How often nodes are looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// How many of them at once: 5000 nodes take a little more than a minute.
const ROWS: usize = 64;
/// How many sums are written into the log and reported as events at a time. All are counted.
const REPORTS_MAX: usize = 16;

/// How far the audit has come.
#[derive(Default)]
pub(super) struct Auditing {
    looked: Option<Moment>,
    next: Turn,
}

impl Scheduler {
    /// Looks at the next nodes, or at what the next plugin sums up of the whole cluster, if that was not done lately.
    pub(super) fn audit(&mut self) {
        let now = self.clock.moment();
        let is_early = self.auditing.looked.is_some_and(|looked| now.since(looked) < PERIOD);
        if is_early || self.is_working || !self.feed.is_complete() {
            return;
        }
        self.auditing.looked = Some(now);
        self.is_working = true;
        let (found, next) = self.engine.audit(self.auditing.next, ROWS);
        self.is_working = false;
        self.auditing.next = next.unwrap_or_default();
        if let Some(measures) = &self.measures {
            for mismatch in &found {
                measures.mismatched(mismatch.sum);
            }
        }
        found.iter().take(REPORTS_MAX).for_each(|mismatch| self.mismatched(mismatch));
        if let (None, Some(measures)) = (next, &self.measures) {
            measures.audited(self.clock.now());
        }
    }

    /// A whole round at once: which sums were not what the objects amount to. They are corrected.
    pub fn audit_all(&mut self) -> Vec<Mismatch> {
        // What was under way when the task broke off is begun anew.
        if self.is_working { Vec::new() } else { self.engine.audit_all() }
    }

    fn mismatched(&self, Mismatch { subject, sum, details }: &Mismatch) {
        tracing::error!(?subject, sum, details, "a sum of the scheduling engine was wrong, and is corrected");
        let (kind, key, uid, of) = match subject {
            Subject::Node(name) => {
                let key = ObjectKey::cluster(name);
                let uid = self.feed.nodes.read().get(key.as_str()).map(|entry| entry.uid.clone());
                let Some(uid) = uid else { return };
                (ResourceKind::NODE, key, uid, " of the node")
            }
            Subject::Object { kind, key, uid } => (*kind, key.clone(), uid.clone(), ""),
            Subject::Cluster => return,
        };
        let message = format!("the scheduler's sum {sum}{of} was wrong and is corrected: {details}");
        let event =
            Event { kind, key, uid, type_: EventType::Warning, action: "Auditing", reason: "SumCorrected", message };
        self.events.record(COMPONENT, event);
    }
}
