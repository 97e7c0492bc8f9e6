//! PreEnqueue: whether a pod may be tried at all.

use koord_core::uid::Uid;

use super::Reason;
use crate::{cluster::Cluster, pod::Pod};

/// Keeps pods out of the active queue.
pub trait PreEnqueue: Send + Sync + 'static {
    /// The reason why the pod must not be tried now.
    fn pre_enqueue(&self, pod: &Pod, cluster: &Cluster) -> Result<(), Reason>;

    /// Whether the plugin activates the pods that it keeps out by itself ([`PodActivation`](super::PodActivation)) as soon as they may be tried.
    /// Otherwise it is asked about each of them after every event.
    fn activates(&self) -> bool {
        false
    }

    /// The pod that is tried on behalf of one that is kept out: an event that may help the one has the other tried.
    fn representative(&self, _pod: &Pod, _cluster: &Cluster) -> Option<Uid> {
        None
    }
}
