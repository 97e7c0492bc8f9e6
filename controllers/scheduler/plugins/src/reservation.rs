//! Reservation: resources of a node that are kept for pods which match their owners (`spec/scheduler.md` 3C).
//!
//! What a Reservation keeps and who may use it is a [`ReservationInfo`]; [`Wish`] is what a pod says about reservations. From
//! both follow which reservations a pod matches, whether a node with them takes it ([`fits`]), which of them it uses
//! ([`nominate`]), and how nodes compare. [`lifecycle`] is what becomes of a Reservation itself.

mod amounts;
mod figures;
mod fits;
mod info;
mod kept;
pub mod lifecycle;
mod message;
mod over_pods;
mod owners;
mod plugin;
mod pre_allocation;
mod reserve_pod;
mod scores;
mod upkeep;
mod wish;

pub use amounts::Amounts;
pub use fits::{NodeRoom, Unfit, fits};
pub use info::{AllocatePolicy, ReservationInfo};
pub(crate) use kept::Kept;
pub use owners::{Owners, PodIdentity};
pub use plugin::Reservation;
pub use pre_allocation::{Candidate, PreAllocation, pre_allocate};
pub use reserve_pod::{ReservePod, ReservePodError};
pub use scores::{nominate, reservation_score, scores};
pub use wish::{Match, Mismatch, Summary, Wish};
