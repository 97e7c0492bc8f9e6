//! Reservation: resources of a node that are reserved for pods which match its owners (`spec/scheduler.md` 3C).
//!
//! [`koord_scheduler_allocation`] says what is reserved and which pods match. Here is what the plugin decides by that: whether a node with its reservations takes a pod,
//! which of them the pod uses ([`nominate`]), and how nodes compare. [`lifecycle`] is what becomes of a Reservation itself.

mod attempt;
mod conditions;
mod figures;
mod filters;
pub mod lifecycle;
mod message;
mod over_pods;
mod plugin;
mod pre_allocation;
mod preemption;
mod scores;
mod shown;
mod status_updates;
mod unmatched;

pub use plugin::Reservation;
pub use pre_allocation::{Candidate, PreAllocation, pre_allocate};
pub use scores::{nominate, reservation_score, scores};

#[cfg(test)]
mod testing {
    use std::sync::Arc;

    use koord_resource::ResourceList;
    use koord_scheduler_allocation::{ReservationInfo, ResourceAmounts};
    use serde_json::Value;

    pub(super) fn amounts(pairs: &[(&str, i64)]) -> ResourceAmounts {
        pairs.iter().map(|(name, amount)| (Arc::from(*name), *amount)).collect()
    }

    /// What a Reservation of [`koord_scheduler_testing`] reserves.
    pub(super) fn reservation(members: Value) -> ReservationInfo {
        let object = koord_scheduler_testing::reservations::reservation(members);
        ReservationInfo::new(&object, &ResourceList::default()).unwrap()
    }
}
