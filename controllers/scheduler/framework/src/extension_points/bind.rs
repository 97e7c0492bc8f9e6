//! Bind: how the node of a reserve pod is written.

use koord_core::write::Write;

use super::Request;
use crate::cluster::{Cluster, Placed};

/// Binds what is not bound as pods are.
pub trait Bind: Send + Sync + 'static {
    /// The write that gives the object behind a reserve pod its node. `None` leaves the pod to the default binding.
    fn bind(&self, request: &Request<'_>, placed: &Placed, cluster: &Cluster) -> Option<Write>;
}
