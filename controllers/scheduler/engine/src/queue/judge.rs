//! What is asked of plugins about a pod in the queue.

use koord_core::uid::Uid;

use super::PluginSet;
use crate::{event::Event, pod::Pod};

/// What the plugins of a pod's profile say about it.
pub trait Judge {
    /// Whether it may be tried at all now; otherwise the plugin that says no. `first` is the plugin that said no before.
    fn gate(&self, pod: &Pod, first: Option<u8>) -> Result<(), u8>;

    /// Whether the plugin that holds a pod back wakes it by itself, so that it is not asked about events.
    fn wakes(&self, pod: &Pod, plugin: u8) -> bool;

    /// The pod that is tried in the place of one that a plugin holds back.
    fn instead(&self, _pod: &Pod, _plugin: u8) -> Option<Uid> {
        None
    }

    /// Whether an event may help a pod that these plugins have refused.
    fn may_help(&self, pod: &Pod, refused_by: PluginSet, event: &Event) -> bool;
}
