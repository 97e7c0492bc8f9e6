//! What plugins have found about the pod of an attempt.

use std::{any::Any, cell::RefCell, sync::Arc};

/// What plugins have found about the pod of an attempt, for the extension points that come later: kube-scheduler's CycleState. It belongs
/// to the attempt and ends with it; a plugin that finds nothing in it looks anew.
#[derive(Default)]
pub struct AttemptState(RefCell<Vec<Arc<dyn Any + Send + Sync>>>);

impl AttemptState {
    /// What was kept of this type, which is a plugin's own.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.borrow().iter().find_map(|stored| Arc::clone(stored).downcast().ok())
    }

    /// Keeps this, instead of what was kept of its type.
    pub fn set<T: Any + Send + Sync>(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut all = self.0.borrow_mut();
        all.retain(|stored| !stored.is::<T>());
        all.push(Arc::clone(&value) as _);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_of_each_type_is_stored() {
        let state = AttemptState::default();
        assert_eq!(state.get::<u8>(), None);
        state.set(1_u8);
        state.set("one");
        state.set(2_u8);
        assert_eq!((state.get::<u8>().as_deref(), state.get::<&str>().as_deref()), (Some(&2), Some(&"one")));
    }
}
