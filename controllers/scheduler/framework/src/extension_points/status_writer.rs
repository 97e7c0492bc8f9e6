//! What plugins write beside bindings: the status of objects that they look after, and objects that they make or delete.

use jiff::Timestamp;
use koord_core::write::Write;

use crate::{cluster::Cluster, pod::Pod};

/// Writes statuses. It is called on the leader alone.
pub trait StatusWriter: Send + Sync + 'static {
    /// The writes that follow from the current state. It is called after changes, and at the times that it names.
    fn status_writes(&self, _cluster: &Cluster) -> StatusUpdates {
        StatusUpdates::default()
    }

    /// What of [`StatusWriter::status_writes`] must not wait until its next call: writes about what has changed since the last call.
    /// It is called after every change.
    fn urgent_writes(&self, _cluster: &mut Cluster) -> Vec<Write> {
        Vec::new()
    }

    /// What is reported of a pod that no node takes, for this message, beside the event and the condition of every pod.
    fn report_unschedulable(&self, _pod: &Pod, _message: &str, _cluster: &Cluster) -> Explanation {
        Explanation::default()
    }
}

/// The writes of a plugin, by the current state. They are returned again until they have taken effect.
#[derive(Clone, Debug, Default)]
pub struct StatusUpdates {
    /// Writes, in no order, one of each object at most: an object's status, or its deletion.
    pub writes: Vec<Write>,
    /// When there may be something else without a change.
    pub again: Option<Timestamp>,
}

impl StatusUpdates {
    /// There may be something else at this time, if not before.
    pub fn not_after(&mut self, time: Option<Timestamp>) {
        self.again = self.again.into_iter().chain(time).min();
    }
}

/// What is reported of a pod that no node takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// For a reserve pod: the write of its object's condition; `None` where the object has it already.
    pub write: Option<Write>,
    /// Further events: their reasons and messages.
    pub events: Vec<(&'static str, String)>,
}
