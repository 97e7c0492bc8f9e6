//! BeforePreFilter: the first look at a pod.

use super::{Rejection, Request};
use crate::cluster::Cluster;

/// Looks at a pod before any plugin's PreFilter does.
pub trait BeforePreFilter: Send + Sync + 'static {
    /// Rejects the pod as a whole. The first rejection ends the attempt, whatever its code.
    fn before_pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection>;
}
