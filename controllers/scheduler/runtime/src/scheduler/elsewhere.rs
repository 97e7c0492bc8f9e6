//! Pods that wait here and get their node from another program: two schedulers answer to one name.

use std::{sync::Arc, time::Duration};

use koord_runtime::clock::Moment;
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::pod::Pod;

use super::Scheduler;
use crate::{feed::Delta, observer::Occurrence, report};

/// How long after the beginning of a lead bindings of the last leader may still arrive.
const SETTLING: Duration = Duration::from_secs(30);
/// How often an event and the log say it.
const PERIOD: Duration = Duration::from_hours(1);

/// Since when this replica leads, and when it was said last.
#[derive(Default)]
pub(super) struct Elsewhere {
    led_since: Option<Moment>,
    said: Option<Moment>,
}

impl Elsewhere {
    /// This replica leads from now on, or only follows.
    pub(super) fn set_led_since(&mut self, since: Option<Moment>) {
        self.led_since = since;
    }
}

impl Scheduler {
    /// Notices a pod that has got its node from another program, before the change is applied.
    pub(super) fn notice_binding(&mut self, delta: &Delta) {
        let Delta::Pod { pod, .. } = delta else { return };
        let now = self.clock.moment();
        let has_settled = self.elsewhere.led_since.is_some_and(|since| now.since(since) >= SETTLING);
        let Some(node) = pod.node.as_ref().filter(|node| has_settled && is_elsewhere(&self.engine, pod, node)) else {
            return;
        };
        self.engine.note_elsewhere(pod, node);
        let profile = &*pod.template.scheduler;
        self.notify(&Occurrence::BoundElsewhere { scheduler: profile });
        if self.elsewhere.said.is_some_and(|reported_at| now.since(reported_at) < PERIOD) {
            return;
        }
        self.elsewhere.said = Some(now);
        let message = format!(
            "another program has bound the pod to {node}: a second scheduler answers to schedulerName {profile:?}. Give each its own \
             name, or remove one; both give out the same resources"
        );
        tracing::warn!(pod = %pod.key, node = &**node, profile, "another program binds pods of this scheduler");
        self.events.record(super::COMPONENT, report::remark(pod, "BoundElsewhere", &message));
    }
}

/// Whether a pod waits here, or is assumed on another node, and this node was never chosen for it.
fn is_elsewhere(engine: &Engine, pod: &Pod, node: &Arc<str>) -> bool {
    let cluster = engine.cluster();
    let is_open = match cluster.pod(&pod.uid) {
        Some(placed) => placed.pod.node.is_none() && cluster.name(placed.row) != Some(node),
        None => cluster.pending_pod(&pod.uid).is_some(),
    };
    is_open && engine.profile(&pod.template.scheduler).is_some() && !engine.has_bound(pod, node)
}
