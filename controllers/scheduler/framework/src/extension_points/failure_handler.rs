//! What follows an attempt that failed.

use super::{Found, Orders, Request};
use crate::cluster::Cluster;

/// Hears of pods that no node took.
pub trait FailureHandler: Send + Sync + 'static {
    /// An attempt has ended without a node.
    fn attempt_failed(&self, request: &Request<'_>, found: &Found, cluster: &mut Cluster, orders: &mut Orders);
}
