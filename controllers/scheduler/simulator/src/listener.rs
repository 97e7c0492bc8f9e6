//! What the scheduler says about pods.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventSink},
    key::ObjectKey,
};
use parking_lot::Mutex;

/// Keeps what was said until it is taken.
#[derive(Default)]
pub(crate) struct Listener(Mutex<Vec<Event>>);

/// Something that was said about a pod.
#[derive(Debug)]
pub(crate) enum Said {
    /// An attempt to place it has failed, for these reasons.
    Refused(String),
    /// It was evicted for another.
    Preempted,
    /// Its cache cannot read it.
    Unreadable(String),
}

impl Listener {
    pub(crate) fn shared() -> Arc<Self> {
        Arc::default()
    }

    /// What was said of pods since the last call.
    pub(crate) fn take(&self) -> Vec<(ObjectKey, Said)> {
        let pod_event = |event: Event| {
            let what = match event.reason {
                "FailedScheduling" => Said::Refused(event.message),
                "Preempted" => Said::Preempted,
                "DecodeError" => Said::Unreadable(event.message),
                _ => return None,
            };
            Some((event.key, what)).filter(|_| event.kind == ResourceKind::POD)
        };
        std::mem::take(&mut *self.0.lock()).into_iter().filter_map(pod_event).collect()
    }
}

impl EventSink for Listener {
    fn record(&self, _: &'static str, event: Event) {
        self.0.lock().push(event);
    }
}
