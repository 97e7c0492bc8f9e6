//! What is equal is kept once: label keys, names, whole specs that thousands of objects share.

use std::{
    any::{Any, TypeId},
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// Keeps one copy of each text, and of each value that is shared, while somebody else holds it.
///
/// What nobody holds any more is dropped in time, by the length of the texts that objects came and went with
/// ([`Interner::passed`]) and not by their number: a single object may have megabytes of labels that no other has.
#[derive(Debug, Default)]
pub struct Interner {
    texts: Table<str>,
    /// By their type; a [`Table`] for what is shared.
    values: BTreeMap<TypeId, Box<dyn Own>>,
    field_manager: &'static str,
    /// The length of the texts that have passed since what nobody holds was dropped.
    passed: usize,
    /// How many entries there were when the last text had passed, and how many were left of those that had been there.
    entries: usize,
    left: usize,
}

/// What a projection keeps beside texts ([`Interner::own`]): values that objects share.
pub trait Shares: Default + Send + Sync + 'static {
    /// Drops what nobody else holds.
    fn sweep(&mut self);

    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// [`Shares`] of some type.
trait Own: Any + Send + Sync {
    fn sweep(&mut self);
    fn len(&self) -> usize;
}

impl fmt::Debug for dyn Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.len())
    }
}

impl<T: Shares> Own for T {
    fn sweep(&mut self) {
        Shares::sweep(self);
    }

    fn len(&self) -> usize {
        Shares::len(self)
    }
}

impl Interner {
    /// What nobody holds stays until texts of this length have passed.
    const PASSED_MIN: usize = 1 << 20;
    /// The length that is worth looking at an entry.
    const PASSED_PER_ENTRY: usize = 64;

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
    pub fn own<T: Shares>(&mut self) -> &mut T {
        let own = self.values.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        // What is filed under a type is of it.
        (&mut **own as &mut dyn Any).downcast_mut().unwrap_or_else(|| unreachable!())
    }

    /// An object came, changed or went whose text has this length. What nobody holds is dropped where it may be as much as what is held,
    /// or a megabyte.
    pub fn passed(&mut self, length: usize, is_gone: bool) {
        let entries = self.entries();
        // An object that brings nothing new leaves nothing behind.
        if entries != self.entries || is_gone {
            self.passed += length;
        }
        self.entries = entries;
        if self.passed >= Self::PASSED_MIN.max(Self::PASSED_PER_ENTRY * self.left) {
            self.sweep();
        }
    }

    /// Drops what nobody holds. Values hold texts, so they go first.
    fn sweep(&mut self) {
        self.values.values_mut().for_each(|own| own.sweep());
        self.texts.sweep();
        self.entries = self.entries();
        (self.left, self.passed) = (self.entries, 0);
    }

    fn entries(&self) -> usize {
        self.texts.known.len() + self.values.values().map(|own| own.len()).sum::<usize>()
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

/// When what nobody holds any more is dropped of entries that are all about as large: at a number that doubles with what is left, so that
/// the cost of each stays constant.
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
}

impl<T: ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self { known: BTreeSet::new() }
    }
}

impl<T: Ord + ?Sized> Table<T> {
    fn find(&self, value: &T) -> Option<Arc<T>> {
        self.known.get(value).map(Arc::clone)
    }

    fn keep(&mut self, new: Arc<T>) -> Arc<T> {
        self.known.insert(Arc::clone(&new));
        new
    }

    fn sweep(&mut self) {
        self.known.retain(is_held);
    }
}

impl<T: Ord + Send + Sync + 'static> Shares for Table<T> {
    fn sweep(&mut self) {
        Self::sweep(self);
    }

    fn len(&self) -> usize {
        self.known.len()
    }
}

/// Values that are found by a key, each while somebody else holds it.
#[derive(Debug)]
pub struct Kept<K, T> {
    known: BTreeMap<K, Arc<T>>,
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self { known: BTreeMap::new() }
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
        let new = Arc::new(new);
        self.known.insert(key, Arc::clone(&new));
        new
    }
}

impl<K, T> Shares for Kept<K, T>
where
    K: Ord + Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    fn sweep(&mut self) {
        self.known.retain(|_, value| is_held(value));
    }

    fn len(&self) -> usize {
        self.known.len()
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
            interner.passed(1 << 10, false);
        }
        let most = 3 * 1024 + 3;
        assert!(interner.entries() <= most, "{} entries are left", interner.entries());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")) && Arc::ptr_eq(&value, &interner.share(-1_i32)));
        assert!(
            Arc::ptr_eq(&found, interner.own::<Kept<i32, i32>>().find(&-1).unwrap())
                && interner.own::<Kept<i32, i32>>().find(&1).is_none()
        );
    }

    #[test]
    fn a_few_large_objects_that_are_gone_leave_nothing() {
        let mut interner = Interner::default();
        let large = "x".repeat(Interner::PASSED_MIN);
        for object in 0..20 {
            let texts: Vec<_> = (0..10).map(|text| interner.intern(&format!("{object} {text} {large}"))).collect();
            interner.passed(10 * large.len(), false);
            drop(texts);
            interner.passed(10 * large.len(), true);
            assert_eq!(interner.len(), 0);
        }
    }

    #[test]
    fn what_is_held_is_not_looked_at_again_and_again() {
        let mut interner = Interner::default();
        let held: Vec<_> = (0..100_000).map(|number| interner.intern(&number.to_string())).collect();
        interner.passed(Interner::PASSED_MIN, false);
        for _ in 0..6 {
            interner.intern("new");
            interner.passed(Interner::PASSED_MIN, false);
            assert_eq!((interner.len(), interner.passed > 0), (held.len() + 1, true), "it stays for a while");
            interner.passed(1 << 30, false);
            assert_eq!(interner.len(), held.len() + 1, "nothing new has come");
        }
        interner.passed(Interner::PASSED_PER_ENTRY * held.len(), true);
        assert_eq!(interner.len(), held.len());
    }
}
