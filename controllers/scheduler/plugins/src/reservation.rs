//! Reservation: resources of a node that are kept for pods which match their owners (`spec/scheduler.md` 3C).
//!
//! What a Reservation keeps and who may use it is a [`ReservationInfo`]; [`ReservationSelector`] is what a pod says about reservations. From
//! both follow which reservations a pod matches, whether a node with them takes it ([`fits`]), which of them it uses
//! ([`nominate`]), and how nodes compare. [`lifecycle`] is what becomes of a Reservation itself.

mod ask;
mod attempt;
mod conditions;
mod figures;
pub mod lifecycle;
mod message;
mod over_pods;
mod plugin;
mod pre_allocation;
mod preemption;
mod scores;
mod shown;
mod unmatched;
mod upkeep;

pub use plugin::Reservation;
pub use pre_allocation::{Candidate, PreAllocation, pre_allocate};
pub use scores::{nominate, reservation_score, scores};
