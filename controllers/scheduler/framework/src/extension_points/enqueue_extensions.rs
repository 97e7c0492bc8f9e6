//! EnqueueExtensions: the events after which a pod that the plugin refused is tried again.

use crate::{
    cluster::Cluster,
    event::{Event, Events},
    pod::Pod,
};

/// Registers the events that may make pods schedulable that the plugin refused. Without it every event has them tried again.
pub trait EnqueueExtensions: Send + Sync + 'static {
    /// The kinds of events.
    fn events_to_register(&self) -> Events;

    /// Whether this event may help this pod.
    fn is_helped_by(&self, _pod: &Pod, _event: &Event, _cluster: &Cluster) -> bool {
        true
    }
}

/// Every event of these kinds may help every pod ([`Registration::retried_after`](super::Registration::retried_after)).
impl EnqueueExtensions for Events {
    fn events_to_register(&self) -> Events {
        *self
    }
}
