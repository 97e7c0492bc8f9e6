//! ReservationFilter and ReservationScore: whether a reservation has what a plugin gives pods.

use koord_core::uid::Uid;

use super::Request;
use crate::{cluster::Cluster, columns::Row};

/// What of a node a pod is allocated from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationSource {
    /// Whatever the pod may use there: reservations that it matches, and the node.
    Any,
    /// These reservations, or these running pods that a Reservation takes over.
    Only(Vec<Uid>),
    /// What no reservation has.
    Unreserved,
}

/// Filters and scores the reservations of a node by what the plugin would allocate from them.
pub trait ReservationFilter: Send + Sync + 'static {
    /// Prepares for a pod; `None` where the pod requests nothing of the plugin.
    fn prepare_reservation_filter(&self, request: &Request<'_>) -> Option<Box<dyn SourceFilter>>;
}

/// A pod that may be allocated from reservations, as a plugin sees it.
pub trait SourceFilter: Send + Sync {
    /// Whether the pod gets what it requests of the node from this source.
    fn filter_source(&self, cluster: &Cluster, row: Row, source: &AllocationSource) -> bool;

    /// How good that is; `None` where the plugin does not compare reservations.
    fn score_source(&self, _cluster: &Cluster, _row: Row, _source: &AllocationSource) -> Option<i64> {
        None
    }
}
