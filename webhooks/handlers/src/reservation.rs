//! Reservations, as far as a decision needs more than the object; their other rules stand on the type.

mod go_type;
mod merge;
pub mod mutate;

use koord_profile::Profile;
use koord_runtime::store::Store;

use crate::priority_class::PriorityClassValue;

/// What decisions about Reservations see: the profiles, and the PriorityClasses that they name.
#[derive(Clone, Copy)]
pub struct ReservationView<'c> {
    pub(crate) profiles: &'c Store<Profile>,
    pub(crate) priority_classes: &'c Store<PriorityClassValue>,
    /// Whether users are warned about what profiles overwrite.
    pub(crate) warns: bool,
}
