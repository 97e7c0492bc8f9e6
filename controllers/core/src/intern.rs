//! What is equal is kept once: label keys, names, whole specs that thousands of objects share.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Keeps one copy of each text, and of each value that is shared, while somebody else holds it.
#[derive(Debug, Default)]
pub struct Interner {
    texts: Table<str>,
    /// By their type, a [`Table`] of it.
    values: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
    field_manager: &'static str,
}

impl Interner {
    /// For a program that writes under this name.
    pub fn of_manager(field_manager: &'static str) -> Self {
        Self { field_manager, ..Self::default() }
    }

    /// The name under which this program writes: what it owns of an object is recorded under it.
    pub fn field_manager(&self) -> &'static str {
        self.field_manager
    }

    /// The shared copy of a text.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        self.texts.find(text).unwrap_or_else(|| self.texts.keep(text.into()))
    }

    /// The shared copy of a value: for what many objects have in common, such as that which all replicas of a workload
    /// request.
    pub fn share<T: Ord + Send + Sync + 'static>(&mut self, value: T) -> Arc<T> {
        let table = self.values.entry(TypeId::of::<T>()).or_insert_with(|| Box::<Table<T>>::default());
        match table.downcast_mut::<Table<T>>() {
            Some(table) => table.find(&value).unwrap_or_else(|| table.keep(Arc::new(value))),
            None => Arc::new(value),
        }
    }

    /// How many different texts are kept.
    pub fn len(&self) -> usize {
        self.texts.known.len()
    }

    /// Whether no text is kept.
    pub fn is_empty(&self) -> bool {
        self.texts.known.is_empty()
    }
}

#[derive(Debug)]
struct Table<T: ?Sized> {
    known: BTreeSet<Arc<T>>,
    /// Size at which what nobody holds any more is dropped; doubles with what is left, so that the cost of each stays
    /// constant.
    sweep_at: usize,
}

impl<T: Ord + ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), sweep_at: 0 }
    }
}

impl<T: Ord + ?Sized> Table<T> {
    const SWEEP_MIN: usize = 1024;

    fn find(&self, value: &T) -> Option<Arc<T>> {
        self.known.get(value).map(Arc::clone)
    }

    fn keep(&mut self, new: Arc<T>) -> Arc<T> {
        if self.known.len() >= self.sweep_at.max(Self::SWEEP_MIN) {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = self.known.len() * 2;
        }
        self.known.insert(Arc::clone(&new));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let mut interner = Interner::default();
        let a = interner.intern("beta.kubernetes.io/arch");
        assert!(Arc::ptr_eq(&a, &interner.intern("beta.kubernetes.io/arch")));
        assert_eq!(interner.len(), 1);
    }

    #[test]
    fn equal_values_are_one_within_their_type() {
        let mut interner = Interner::default();
        let a = interner.share([1_u8, 2]);
        assert!(Arc::ptr_eq(&a, &interner.share([1_u8, 2])));
        assert!(!Arc::ptr_eq(&a, &interner.share([1_u8, 3])));
        assert_eq!((*interner.share((1_u8, 2_u8)), interner.len()), ((1, 2), 0));
    }

    #[test]
    fn what_nobody_holds_is_dropped_in_time() {
        let mut interner = Interner::default();
        let (kept, value) = (interner.intern("kept"), interner.share(-1_i32));
        for number in 0..10_000 {
            interner.intern(&number.to_string());
            interner.share(number);
        }
        let most = 2 * Table::<str>::SWEEP_MIN;
        assert!(interner.len() <= most, "{} texts are left", interner.len());
        let values = interner.values.values().next().and_then(|table| table.downcast_ref::<Table<i32>>()).unwrap();
        assert!(values.known.len() <= most, "{} values are left", values.known.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")) && Arc::ptr_eq(&value, &interner.share(-1_i32)));
    }
}
