//! What a pod has been given beside its node: cpus, devices, a reservation. Each plugin has a type of its own for it.

use std::{any::Any, sync::Arc};

use koord_resource::ResourceList;

/// What plugins have reserved for one pod. Cheap to clone, and of most pods nothing.
#[derive(Clone, Debug, Default)]
pub struct Holds(Option<Arc<Vec<Hold>>>);

type Hold = Arc<dyn Any + Send + Sync>;

impl Holds {
    /// What the plugin with holds of this type has reserved.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().flat_map(|holds| holds.iter()).find_map(|hold| hold.downcast_ref())
    }

    /// Adds a hold, instead of one of the same type.
    pub fn set<T: Any + Send + Sync>(&mut self, hold: T) {
        let holds = Arc::make_mut(self.0.get_or_insert_default());
        holds.retain(|known| !known.is::<T>());
        holds.push(Arc::new(hold));
    }

    /// Removes the hold of this type.
    pub fn remove<T: Any>(&mut self) {
        if self.get::<T>().is_some() {
            let mut holds = self.0.take().map(Arc::unwrap_or_clone).unwrap_or_default();
            holds.retain(|known| !known.is::<T>());
            self.0 = (!holds.is_empty()).then(|| Arc::new(holds));
        }
    }

    /// Whether nothing is reserved.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// ResizePod: amounts that a reserve pod requests on its node instead of what it said, because it was given them. A
/// plugin sets it in Reserve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resized(pub ResourceList);

impl Resized {
    /// Requests with these amounts.
    #[must_use]
    pub fn over(&self, requests: &ResourceList) -> ResourceList {
        let mut requests = requests.clone();
        for (name, amount) in &self.0 {
            requests.insert(name, amount.clone());
        }
        requests
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
        let before = holds.clone();
        holds.remove::<i8>();
        holds.remove::<u32>();
        assert_eq!((holds.get::<u32>(), holds.get::<&str>(), before.get::<u32>()), (None, Some(&"cpus"), Some(&2)));
        holds.remove::<&str>();
        assert!(holds.is_empty());
    }
}
