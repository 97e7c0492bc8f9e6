//! HTTP extenders, which are called while a node is sought ([`crate::extender`]).

use super::{Candidate, PostFilterResult, Request};
use crate::{cluster::Cluster, pod::Pod};

/// Tells which pods extenders are called about.
pub trait ExtenderCalls: Send + Sync + 'static {
    /// Whether an extender may be called about this pod.
    fn may_call(&self, pod: &Pod) -> bool;

    /// Whether extenders are to be called about the nodes that take the pod before one of them is chosen.
    fn calls(&self, request: &Request<'_>, cluster: &Cluster) -> bool;

    /// The candidates of preemption that extenders leave, with the victims that they choose; or what is done instead while they have not
    /// answered, or cannot.
    fn process_preemption(
        &self,
        request: &Request<'_>,
        cluster: &Cluster,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, PostFilterResult>;
}
