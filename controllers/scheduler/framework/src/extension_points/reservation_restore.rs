//! ReservationRestore: what is reserved is free for those that it is reserved for.

use super::Request;
use crate::cluster::{Cluster, ExcludedPods};

/// Restores reserved resources before a node is sought.
pub trait ReservationRestore: Send + Sync + 'static {
    /// The reserve pods and owners that are left out of the snapshot for this pod until it is decided about: what they hold is meant for it.
    /// `None` where nothing is restored.
    fn restore(&self, request: &Request<'_>, cluster: &Cluster) -> Option<ExcludedPods>;
}
