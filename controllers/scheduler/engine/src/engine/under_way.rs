//! The attempt that is being made, for who watches the engine from another thread.

use std::sync::{Arc, Mutex, PoisonError};

use koord_core::clock::Moment;

use crate::pod::Pod;

/// The pod that is being decided about, and since when. Copies show the same.
#[derive(Clone, Debug, Default)]
pub struct UnderWay(Arc<Mutex<Option<(Arc<Pod>, Moment)>>>);

impl UnderWay {
    /// What is being decided now; none between attempts. It does not wait for the attempt.
    pub fn get(&self) -> Option<(Arc<Pod>, Moment)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, attempt: Option<(Arc<Pod>, Moment)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = attempt;
    }
}
