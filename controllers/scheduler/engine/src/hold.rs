//! What a pod has been given beside its node: cpus, devices, a reservation. Each plugin has a type of its own for it.

use std::{any::Any, sync::Arc};

/// What plugins have reserved for one pod. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Holds(Vec<Arc<dyn Any + Send + Sync>>);

impl Holds {
    /// What the plugin with holds of this type has reserved.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|hold| hold.downcast_ref())
    }

    /// Adds a hold, instead of one of the same type.
    pub fn set<T: Any + Send + Sync>(&mut self, hold: T) {
        self.0.retain(|known| !known.is::<T>());
        self.0.push(Arc::new(hold));
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_hold_of_each_type() {
        let mut holds = Holds::default();
        assert!(holds.is_empty());
        holds.set(1_u32);
        holds.set("cpus");
        holds.set(2_u32);
        assert_eq!((holds.get::<u32>(), holds.get::<&str>(), holds.get::<i8>()), (Some(&2), Some(&"cpus"), None));
    }
}
