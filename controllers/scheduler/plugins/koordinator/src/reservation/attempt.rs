//! What was found about the pod that is tried, kept for its attempt: several extension points ask for the same.

use std::sync::{Arc, OnceLock};

use koord_scheduler_allocation::ReservationCache;
use koord_scheduler_framework::{AttemptState, Rejection, cluster::Cluster};

use super::{filters::MatchedReservations, over_pods::OverPods};

/// What was found about a pod, as long as no reservation and no owner changes.
#[derive(Default)]
pub(super) struct ReservationsFound {
    generation: u64,
    /// The reservations that an owner matches.
    pub(super) chosen: OnceLock<Option<Arc<MatchedReservations>>>,
    /// The running pods that a Reservation may take over.
    pub(super) over: OnceLock<Result<Option<Arc<OverPods>>, Rejection>>,
}

impl ReservationsFound {
    /// What is known in this attempt.
    pub(super) fn of(state: &AttemptState, cluster: &Cluster) -> Arc<Self> {
        let generation = cluster.state::<ReservationCache>().map_or(0, ReservationCache::generation);
        let known = state.get::<Self>().filter(|found| found.generation == generation);
        known.unwrap_or_else(|| state.set(Self { generation, ..Self::default() }))
    }
}
