//! An audit of the engine's sums, a few nodes at a time: what differs from the objects is reported and set right.

use std::time::Duration;

use koord_engine::cluster::Mismatch;
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

/// How far the audit has come.
#[derive(Default)]
pub(super) struct Auditing {
    looked: Option<Moment>,
    next: usize,
}

impl Scheduler {
    /// Looks at the next nodes, if that was not done lately.
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
        self.auditing.next = next.unwrap_or(0);
        for mismatch in &found {
            self.mismatched(mismatch);
        }
        if let (None, Some(measures)) = (next, &self.measures) {
            measures.audited(self.clock.now());
        }
    }

    fn mismatched(&self, Mismatch { node, sum, details }: &Mismatch) {
        tracing::error!(%node, sum, details, "a sum of the scheduling engine was wrong, and is corrected");
        if let Some(measures) = &self.measures {
            measures.mismatched(sum);
        }
        let key = ObjectKey::cluster(node);
        let uid = self.feed.nodes.read().get(key.as_str()).map(|entry| entry.uid.clone());
        let Some(uid) = uid else { return };
        let message = format!("the scheduler's sum {sum} of the node was wrong and is corrected: {details}");
        let event = Event {
            kind: ResourceKind::NODE,
            key,
            uid,
            type_: EventType::Warning,
            action: "Auditing",
            reason: "SumCorrected",
            message,
        };
        self.events.record(COMPONENT, event);
    }
}
