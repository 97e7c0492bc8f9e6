//! The attempt that is being made, for a watchdog on another thread.

use std::sync::{Arc, Mutex, PoisonError};

use koord_core::clock::Moment;
use koord_scheduler_framework::pod::Pod;

/// A pod, and since when it is being tried.
type Begun = (Arc<Pod>, Moment);

/// The pod that is being tried, and since when. Copies show the same.
#[derive(Clone, Debug, Default)]
pub struct CurrentAttempt(Arc<Mutex<Option<Begun>>>);

impl CurrentAttempt {
    /// The pod that is being tried now; `None` between attempts. It does not wait for the attempt.
    pub fn get(&self) -> Option<(Arc<Pod>, Moment)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, attempt: Option<Begun>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attempt;
    }
}
