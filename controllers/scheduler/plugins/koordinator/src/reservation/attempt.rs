//! What was found about the pod that is tried, kept for its attempt: several extension points ask for the same.

use std::{cell::OnceCell, sync::Arc};

use koord_core::uid::Uid;
use koord_scheduler_allocation::ReservationCache;
use koord_scheduler_framework::{Rejection, cluster::Cluster, pod::Pod};
use parking_lot::Mutex;

use super::{ask::Chosen, over_pods::OverPods};

/// What was found about one pod, as long as no reservation and no owner changes.
#[derive(Default)]
pub(super) struct Attempt(Mutex<Option<Found>>);

struct Found {
    pod: Uid,
    generation: u64,
    chosen: OnceCell<Option<Arc<Chosen>>>,
    over: OnceCell<Result<Option<Arc<OverPods>>, Rejection>>,
}

impl Attempt {
    /// A new attempt begins.
    pub(super) fn begin(&self) {
        *self.0.lock() = None;
    }

    /// The reservations that an owner matches.
    pub(super) fn chosen(
        &self,
        pod: &Pod,
        cluster: &Cluster,
        find: impl FnOnce() -> Option<Chosen>,
    ) -> Option<Arc<Chosen>> {
        self.of(pod, cluster, |found| found.chosen.get_or_init(|| find().map(Arc::new)).clone())
    }

    /// The running pods that a Reservation may take over.
    pub(super) fn over(
        &self,
        pod: &Pod,
        cluster: &Cluster,
        find: impl FnOnce() -> Result<Option<OverPods>, Rejection>,
    ) -> Result<Option<Arc<OverPods>>, Rejection> {
        self.of(pod, cluster, |found| found.over.get_or_init(|| find().map(|over| over.map(Arc::new))).clone())
    }

    fn of<T>(&self, pod: &Pod, cluster: &Cluster, get: impl FnOnce(&Found) -> T) -> T {
        let generation = cluster.state::<ReservationCache>().map_or(0, ReservationCache::generation);
        let mut known = self.0.lock();
        let is_known = known.as_ref().is_some_and(|found| found.pod == pod.uid && found.generation == generation);
        if !is_known {
            *known = None;
        }
        let (chosen, over) = (OnceCell::new(), OnceCell::new());
        get(known.get_or_insert_with(|| Found { pod: pod.uid.clone(), generation, chosen, over }))
    }
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Attempt")
    }
}
