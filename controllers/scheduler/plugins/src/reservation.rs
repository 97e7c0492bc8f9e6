//! Reservation: resources of a node that are kept for pods which match their owners (`spec/scheduler.md` 3C).
//!
//! What a Reservation keeps and who may use it is a [`ReservationInfo`]; [`Wish`] is what a pod says about reservations. From
//! both follow which reservations a pod matches, whether a node with them takes it ([`fits`]), which of them it uses
//! ([`nominate`]), and how nodes compare. [`lifecycle`] is what becomes of a Reservation itself.

mod amounts;
mod ask;
mod attempt;
mod conditions;
mod figures;
mod fits;
mod info;
mod kept;
pub mod lifecycle;
pub(crate) mod lots;
mod message;
mod over_pods;
mod owners;
mod plugin;
mod pre_allocation;
mod preemption;
mod reserve_pod;
mod scores;
mod shown;
mod unmatched;
mod upkeep;
mod wish;

pub use amounts::Amounts;
pub use fits::{Needs, NodeRoom, Unfit, fits};
pub use info::{AllocatePolicy, ReservationInfo};
pub(crate) use kept::{CountedTwice, Kept, is_counted_once};
pub use owners::Owners;
pub use plugin::Reservation;
pub use pre_allocation::{Candidate, PreAllocation, pre_allocate};
pub use reserve_pod::{ReservePod, ReservePodError};
pub use scores::{nominate, reservation_score, scores};
pub use wish::{Match, Mismatch, Summary, Wish};
