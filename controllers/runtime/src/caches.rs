//! Whether the caches of a program are complete, for parts of it that answer from them.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::RwLock;

use crate::Watch;

/// The watches that feed the caches of a [`Core`](crate::Core), those that are asked for later too. Cheap to clone.
#[derive(Clone, Default)]
pub struct Caches(Arc<RwLock<Vec<Weak<Watch>>>>);

impl Caches {
    /// What these watches feed is waited for too.
    pub(crate) fn add(&self, watches: &[Arc<Watch>]) {
        let mut known = self.0.write();
        for watch in watches {
            let watch = Arc::downgrade(watch);
            if !known.iter().any(|other| other.ptr_eq(&watch)) {
                known.push(watch);
            }
        }
    }

    /// The kinds whose objects are not all known, each once, in the order in which their caches were asked for.
    pub fn incomplete(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        // A watch whose core has gone never becomes complete, and nothing is served any more.
        for watch in self.0.read().iter().filter_map(Weak::upgrade) {
            if !watch.is_complete() && !kinds.contains(&watch.kind.kind) {
                kinds.push(watch.kind.kind);
            }
        }
        kinds
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches").field("incomplete", &self.incomplete()).finish_non_exhaustive()
    }
}
