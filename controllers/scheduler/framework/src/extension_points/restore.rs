//! What running pods were given, read back from what is written in them.

use crate::{cluster::Placed, hold::Holds, pod::Pod};

/// Restores allocations of pods that have a node: after a start, and of pods that others bound.
pub trait AllocationRestore: Send + Sync + 'static {
    /// Adds what the pod was given, by its annotations, to `holds`.
    fn restore_allocation(&self, _pod: &Pod, _holds: &mut Holds) {}

    /// The pod was known as `was` before. `holds` are those that it had then, with what [`AllocationRestore::restore_allocation`] reads now.
    fn update_allocation(&self, _was: &Placed, _pod: &Pod, _holds: &mut Holds) {}
}
