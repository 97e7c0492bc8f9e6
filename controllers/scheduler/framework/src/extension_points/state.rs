//! What a plugin caches of the cluster.

use crate::cluster::state::State;

/// Keeps a state of its own, which sees every change of the cluster and is undone with trials.
pub trait PluginState: Send + Sync + 'static {
    /// The state for an empty cluster.
    fn state(&self) -> Box<dyn State>;
}
