//! What of a node is allocated to which pods, beside what they request of it: reserved resources, CPUs and NUMA nodes, devices.
//!
//! The plugins that filter and score by reservations, and those that allocate CPUs and devices, share this; none of them knows another.
//!
//! - [`numa`]: the CPUs and NUMA nodes of a node, what pods have of them, and the CPU accumulator.
//! - [`devices`]: the devices of a node, what pods have of them, and the allocator.
//! - [`NodeAllocations`]: both of one node by itself, with the pods that have them and what contradicts itself, for tools.
//! - At the root, reservations: [`ReservationInfo`] (what one reserves, and who uses it), [`ReservationSelector`] (which of them a pod may use),
//!   [`ReservationCache`] (those of a cluster), [`ReservedResources`] (what is reserved on one node).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod amounts;
pub mod devices;
mod node_allocations;
pub mod numa;
mod owners;
mod reservation_affinity;
mod reservation_cache;
mod reservation_fit;
mod reservation_info;
mod reserve_pod;
mod reserved_resources;

pub use amounts::ResourceAmounts;
pub use node_allocations::{CpuConflict, DeviceConflict, NodeAllocations, UnreadableAllocation};
pub use owners::Owners;
pub use reservation_affinity::{ReservationMatch, ReservationMismatch, ReservationSelector, Summary};
pub use reservation_cache::{
    Allocated, Assumed, CountedTwice, Matched, ReservationCache, ReservationQuery, Unused, has_reservation_mode,
    is_counted_once, object_of,
};
pub use reservation_fit::{FitOptions, Unfit, UnreservedResources, exceeded, fits, fits_in, insufficient_by_node};
pub use reservation_info::{AllocatePolicy, ReservationInfo};
pub use reserve_pod::{ReservePod, ReservePodError, is_over};
pub use reserved_resources::{
    Choice, ReservationRequirement, ReservedResources, TakenOver, any_fits, are_too_small, choices, is_unreserved,
    reservations_with, reserved, source, users,
};

#[cfg(test)]
mod testing {
    pub(crate) use super::{amounts::amounts, reservation_info::tests::reservation};
}
