//! PreFilter, as far as it is about the pod and the cluster as a whole.

use super::{Rejection, Request};
use crate::cluster::Cluster;

/// Looks at a pod before nodes are filtered. What it prepares for them is [`Filter::prepare_filter`](super::Filter::prepare_filter).
pub trait PreFilter: Send + Sync + 'static {
    /// Rejects the pod as a whole. It is called in every attempt.
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection>;
}
