//! What is equal is kept once: label keys, names, whole specs that thousands of objects share.

use std::{
    any::{Any, TypeId},
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Keeps one copy of each text, and of each value that is shared, while somebody else holds it.
#[derive(Debug, Default)]
pub struct Interner {
    texts: Table<str>,
    /// By their type; a [`Table`] for what is shared.
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
        let table = self.own::<Table<T>>();
        table.find(&value).unwrap_or_else(|| table.keep(Arc::new(value)))
    }

    /// What a projection keeps beside the texts, made where it is not there yet. There is one of each type.
    pub fn own<T: Default + Send + Sync + 'static>(&mut self) -> &mut T {
        let own = self.values.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        // What is filed under a type is of it.
        own.downcast_mut().unwrap_or_else(|| unreachable!())
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

/// When what nobody holds any more is dropped: at a size that doubles with what is left, so that the cost of each stays constant.
#[derive(Clone, Debug, Default)]
pub struct Sweep<const MIN: usize = 1024> {
    at: usize,
}

impl<const MIN: usize> Sweep<MIN> {
    /// Drops what is to be dropped of a collection, where it is time. `len` is its size.
    pub fn run<C>(&mut self, collection: &mut C, len: impl Fn(&C) -> usize, drop: impl FnOnce(&mut C)) {
        if self.is_due(len(collection)) {
            drop(collection);
            self.done(len(collection));
        }
    }

    /// Whether it is time for a collection of this size.
    pub fn is_due(&self, len: usize) -> bool {
        len >= self.at.max(MIN)
    }

    /// So much is left.
    pub fn done(&mut self, left: usize) {
        self.at = left * 2;
    }
}

/// Whether somebody else holds a value.
pub fn is_held<T: ?Sized>(value: &Arc<T>) -> bool {
    Arc::strong_count(value) > 1
}

#[derive(Debug)]
struct Table<T: ?Sized> {
    known: BTreeSet<Arc<T>>,
    sweep: Sweep,
}

impl<T: Ord + ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self { known: BTreeSet::new(), sweep: Sweep::default() }
    }
}

impl<T: Ord + ?Sized> Table<T> {
    fn find(&self, value: &T) -> Option<Arc<T>> {
        self.known.get(value).map(Arc::clone)
    }

    fn keep(&mut self, new: Arc<T>) -> Arc<T> {
        self.sweep.run(&mut self.known, BTreeSet::len, |known| known.retain(is_held));
        self.known.insert(Arc::clone(&new));
        new
    }
}

/// Values that are found by a key, each while somebody else holds it.
#[derive(Debug)]
pub struct Kept<K, T> {
    known: BTreeMap<K, Arc<T>>,
    sweep: Sweep,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), sweep: Sweep::default() }
    }
}

impl<K: Ord, T> Kept<K, T> {
    /// The value of a key.
    pub fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&Arc<T>>
    where
        K: Borrow<Q>,
    {
        self.known.get(key)
    }

    /// Keeps a value under a key, instead of another.
    pub fn keep(&mut self, key: K, new: T) -> Arc<T> {
        self.sweep.run(&mut self.known, BTreeMap::len, |known| known.retain(|_, value| is_held(value)));
        let new = Arc::new(new);
        self.known.insert(key, Arc::clone(&new));
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
        let found = interner.own::<Kept<i32, i32>>().keep(-1, 1);
        for number in 0..10_000 {
            interner.intern(&number.to_string());
            interner.share(number);
            interner.own::<Kept<i32, i32>>().keep(number, -number);
        }
        let most = 2 * 1024;
        assert!(interner.len() <= most, "{} texts are left", interner.len());
        let values = interner.own::<Table<i32>>().known.len();
        assert!(values <= most, "{values} values are left");
        let by_key = interner.own::<Kept<i32, i32>>().known.len();
        assert!(by_key <= most, "{by_key} values with a key are left");
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")) && Arc::ptr_eq(&value, &interner.share(-1_i32)));
        assert!(
            Arc::ptr_eq(&found, interner.own::<Kept<i32, i32>>().find(&-1).unwrap())
                && interner.own::<Kept<i32, i32>>().find(&1).is_none()
        );
    }
}
