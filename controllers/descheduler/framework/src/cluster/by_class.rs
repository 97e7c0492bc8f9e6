//! What is found out once for all pods of an equivalence class.

use std::cell::RefCell;

use super::{Cluster, PodId};

/// A value for each equivalence class of one snapshot, as far as it was asked for.
#[derive(Debug)]
pub struct ByClass<T>(RefCell<Vec<Option<T>>>);

impl<T> Default for ByClass<T> {
    fn default() -> Self {
        Self(RefCell::default())
    }
}

impl<T: Clone> ByClass<T> {
    /// The value of a pod's class, which is computed for the first of its pods.
    pub fn of(&self, cluster: &Cluster, id: PodId, compute: impl FnOnce() -> T) -> T {
        let class = cluster.equivalence_class(id);
        if let Some(Some(known)) = self.0.borrow().get(class) {
            return known.clone();
        }
        let value = compute();
        let mut known = self.0.borrow_mut();
        if known.len() <= class {
            known.resize(cluster.equivalence_classes_max().max(class + 1), None);
        }
        if let Some(slot) = known.get_mut(class) {
            *slot = Some(value.clone());
        }
        value
    }
}
