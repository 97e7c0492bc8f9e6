//! Where utilization is known from.

use koord_descheduler_framework::{Cluster, NodeId, PodId};
use koord_scheduling::{ResourceId, ResourceVector};

/// What nodes and pods use. The number of pods is the amount of [`ResourceId::PODS`], which is 1 for a pod.
pub(crate) trait UsageSource {
    fn of_node(&self, cluster: &Cluster, node: NodeId) -> ResourceVector;
    fn of_pod(&self, cluster: &Cluster, pod: PodId) -> ResourceVector;
}

/// What pods request is taken for what they use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests;

impl UsageSource for Requests {
    fn of_node(&self, cluster: &Cluster, node: NodeId) -> ResourceVector {
        let mut usage = cluster.requested(node).clone();
        usage.set(ResourceId::PODS, i64::try_from(cluster.active_pods(node)).unwrap_or(i64::MAX));
        usage
    }

    fn of_pod(&self, cluster: &Cluster, pod: PodId) -> ResourceVector {
        let mut usage = cluster.requests(pod).clone();
        usage.set(ResourceId::PODS, 1);
        usage
    }
}
