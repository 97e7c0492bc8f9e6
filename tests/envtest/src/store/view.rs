//! A collection as it was at some revision.

use std::{collections::BTreeMap, iter::Peekable, ops::Bound, sync::Arc};

use super::{Change, Collection, Record};

/// One kind's objects at a revision: those of the collection, with later changes undone.
///
/// It costs as much as there are later changes; the collection itself is not copied.
#[derive(Debug)]
pub struct View<'a> {
    collection: &'a Collection,
    /// What later changes touched, as it was before them.
    before: BTreeMap<&'a str, (&'a Arc<str>, Option<&'a Arc<Record>>)>,
}

impl<'a> View<'a> {
    pub(super) fn new(collection: &'a Collection, later: impl Iterator<Item = &'a Change>) -> Self {
        let mut before = BTreeMap::new();
        for change in later {
            // The first later change knows what was there before all of them.
            before.entry(change.key.as_ref()).or_insert((&change.key, change.old.as_ref()));
        }
        Self { collection, before }
    }

    /// The object of that key.
    pub fn get(&self, key: &str) -> Option<&'a Arc<Record>> {
        match self.before.get(key) {
            Some((_, old)) => *old,
            None => self.collection.get(key),
        }
    }

    /// Objects whose key starts with `prefix` and is greater than or equal to `start`, in key order.
    pub fn range<'v>(
        &'v self,
        prefix: &'v str,
        start: &str,
    ) -> impl Iterator<Item = (&'v Arc<str>, &'v Arc<Record>)> + use<'v> {
        let from = if start > prefix { start } else { prefix };
        let untouched = self.collection.range(prefix, start).filter(|(key, _)| !self.before.contains_key(key.as_ref()));
        let touched = self
            .before
            .range::<str, _>((Bound::Included(from), Bound::Unbounded))
            .take_while(move |(text, _)| text.starts_with(prefix))
            .filter_map(|(_, (key, old))| old.map(|old| (*key, old)));
        Merged { one: untouched.peekable(), two: touched.peekable() }
    }
}

/// Two iterators in key order as one.
struct Merged<A: Iterator, B: Iterator> {
    one: Peekable<A>,
    two: Peekable<B>,
}

impl<'v, A, B> Iterator for Merged<A, B>
where
    A: Iterator<Item = (&'v Arc<str>, &'v Arc<Record>)>,
    B: Iterator<Item = (&'v Arc<str>, &'v Arc<Record>)>,
{
    type Item = (&'v Arc<str>, &'v Arc<Record>);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.one.peek(), self.two.peek()) {
            (Some((one, _)), Some((two, _))) if two < one => self.two.next(),
            (Some(_), _) => self.one.next(),
            (None, _) => self.two.next(),
        }
    }
}
