//! What strategies keep from pass to pass.

use std::{any::Any, collections::BTreeMap, fmt};

/// What strategies keep from pass to pass. A pass works on a copy.
#[derive(Clone, Default)]
pub struct Memory(BTreeMap<(usize, &'static str), Box<dyn Remembered>>);

/// A value of any type that can be copied.
trait Remembered: Any + Send + Sync {
    fn copied(&self) -> Box<dyn Remembered>;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<T: Any + Clone + Send + Sync> Remembered for T {
    fn copied(&self) -> Box<dyn Remembered> {
        Box::new(self.clone())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Clone for Box<dyn Remembered> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Memory {
    /// The value of a profile's plugin. A plugin keeps values of one type.
    pub(crate) fn of<T: Any + Clone + Default + Send + Sync>(&mut self, of: (usize, &'static str)) -> &mut T {
        let kept = self.0.entry(of).or_insert_with(|| Box::new(T::default()));
        if (**kept).as_any().downcast_mut::<T>().is_none() {
            *kept = Box::new(T::default());
        }
        match (**kept).as_any().downcast_mut::<T>() {
            Some(value) => value,
            None => unreachable!("it has just been set"),
        }
    }
}
