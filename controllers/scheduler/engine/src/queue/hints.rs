//! What the queue asks of plugins.

use koord_core::uid::Uid;
use koord_scheduler_framework::{PluginSet, event::Event, pod::Pod};

/// PreEnqueue and queueing hints of the plugins of a pod's profile.
pub trait QueueingHints {
    /// Whether the pod may be tried now; otherwise the plugin that keeps it out. `first` is the plugin that did so before.
    fn pre_enqueue(&self, pod: &Pod, first: Option<u8>) -> Result<(), u8>;

    /// Whether the plugin that keeps a pod out activates it by itself, so that it is not asked about events.
    fn activates(&self, pod: &Pod, plugin: u8) -> bool;

    /// The pod that is tried on behalf of one that a plugin keeps out.
    fn representative(&self, _pod: &Pod, _plugin: u8) -> Option<Uid> {
        None
    }

    /// Whether a pod that these plugins refused is tried again after an event.
    fn is_helped_by(&self, pod: &Pod, refused_by: PluginSet, event: &Event) -> bool;
}
