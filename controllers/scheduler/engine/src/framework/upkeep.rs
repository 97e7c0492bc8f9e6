//! What plugins want to be done beside attempts.

use jiff::Timestamp;
use koord_core::write::Write;

/// What a plugin wants to be done beside attempts, by what is known now. It is wanted again whenever it is still missing.
#[derive(Clone, Debug, Default)]
pub struct Upkeep {
    /// Writes, in no order, one of each object at most: an object's status, or its deletion.
    pub writes: Vec<Write>,
    /// When there may be something else without a change.
    pub again: Option<Timestamp>,
}

impl Upkeep {
    /// There may be something else at this time, if not before.
    pub fn not_after(&mut self, time: Option<Timestamp>) {
        self.again = self.again.into_iter().chain(time).min();
    }
}
