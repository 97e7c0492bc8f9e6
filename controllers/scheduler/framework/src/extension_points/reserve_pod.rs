//! Reserve pods, which are scheduled in the place of an object such as a Reservation.

use std::sync::Arc;

use crate::{object::Object, pod::Pod};

/// Makes reserve pods of objects.
pub trait ReservePodSource: Send + Sync + 'static {
    /// The reserve pod of an object that the plugin reads.
    fn reserve_pod(&self, object: &Object) -> ReservePodState;
}

/// The reserve pod of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ReservePodState {
    /// The object is none that pods are reserved for.
    #[default]
    None,
    /// The object has no reserve pod now.
    Gone,
    /// The reserve pod, with the uid of the object.
    Pod(Arc<Pod>),
}
