//! Orders for other pods: activate those in the queue, allow or reject those that wait for Permit.

use koord_core::uid::Uid;

use super::{JobMark, Reason};
use crate::cluster::Cluster;

/// Orders what happens to other pods once time has passed or something has changed.
pub trait PodActivation: Send + Sync + 'static {
    /// Adds the orders that follow from the cluster as it is now.
    fn order(&self, cluster: &mut Cluster, orders: &mut Orders);
}

/// What a plugin orders for other pods.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Pods that wait for Permit and are bound now.
    pub allow: Vec<Uid>,
    /// Pods that wait for Permit and are unreserved, with the reason.
    pub reject: Vec<(Uid, Reason)>,
    /// Pods that wait for Permit and are unreserved although no other pod was tried while they waited: their leaving helps no pod.
    pub withdraw: Vec<(Uid, Reason)>,
    /// Pods in the queue that are tried next.
    pub activate: Vec<Uid>,
    /// Jobs that begin or end now, for metrics.
    pub marks: Vec<JobMark>,
}
