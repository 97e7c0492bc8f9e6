//! NextPod: which pod is tried next.

use koord_core::uid::Uid;

use super::Orders;
use crate::cluster::Cluster;

/// Chooses the next pod, before the order of the queue does.
pub trait NextPod: Send + Sync + 'static {
    /// The pod to be tried next. `None` leaves it to the queue.
    fn next_pod(&self, cluster: &Cluster) -> Option<Uid>;

    /// The pod that the plugin chose is not in the queue, or another plugin keeps it out.
    fn next_pod_unavailable(&self, _uid: &Uid, _cluster: &mut Cluster, _orders: &mut Orders) {}
}
