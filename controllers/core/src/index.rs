//! Secondary indexes: part of a cache's type, kept by the cache itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    marker::PhantomData,
};

use serde_json::Value;

use crate::key::ObjectKey;

/// Follows the objects of a cache. `()` is the index of a cache that needs none; a pair keeps two.
pub trait Index<P>: Default + Send + Sync + 'static {
    /// An object has come.
    fn insert(&mut self, key: &ObjectKey, value: &P);
    /// An object that was inserted with just this value has gone.
    fn remove(&mut self, key: &ObjectKey, value: &P);
    /// An object of ours was applied: what was declared of it, without its identity, and what the API server made of it.
    fn applied(&mut self, _key: &ObjectKey, _wanted: &Value, _answered: &P) {}
}

impl<P> Index<P> for () {
    fn insert(&mut self, _: &ObjectKey, _: &P) {}
    fn remove(&mut self, _: &ObjectKey, _: &P) {}
}

impl<P, A: Index<P>, B: Index<P>> Index<P> for (A, B) {
    fn insert(&mut self, key: &ObjectKey, value: &P) {
        self.0.insert(key, value);
        self.1.insert(key, value);
    }

    fn remove(&mut self, key: &ObjectKey, value: &P) {
        self.0.remove(key, value);
        self.1.remove(key, value);
    }

    fn applied(&mut self, key: &ObjectKey, wanted: &Value, answered: &P) {
        self.0.applied(key, wanted, answered);
        self.1.applied(key, wanted, answered);
    }
}

/// What objects are looked up by, such as the node of a pod.
pub trait Term<P>: Send + Sync + 'static {
    /// The type of what is looked up.
    type Value: Ord + Clone + Send + Sync + 'static;
    /// Names every value under which an object shall be found; none keeps it out of the index. What an object refers to by a name in its
    /// own namespace is `ObjectKey::new(key.namespace(), name)`.
    fn terms(key: &ObjectKey, object: &P, found_by: &mut dyn FnMut(Self::Value));
}

/// Objects by a [`Term`].
pub struct By<P, T: Term<P>> {
    keys: BTreeMap<T::Value, BTreeSet<ObjectKey>>,
    of: PhantomData<fn(P)>,
}

impl<P, T: Term<P>> Default for By<P, T> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), of: PhantomData }
    }
}

impl<P, T: Term<P>> fmt::Debug for By<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("By").field("values", &self.keys.len()).finish()
    }
}

impl<P, T: Term<P>> By<P, T> {
    /// The objects found by a value, in the order of their keys.
    pub fn get<Q>(&self, value: &Q) -> impl Iterator<Item = &ObjectKey>
    where
        T::Value: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.keys.get(value).into_iter().flatten()
    }

    /// The values under which there are objects, in order.
    pub fn values(&self) -> impl Iterator<Item = &T::Value> {
        self.keys.keys()
    }
}

impl<P: 'static, T: Term<P>> Index<P> for By<P, T> {
    fn insert(&mut self, key: &ObjectKey, value: &P) {
        T::terms(key, value, &mut |term| {
            self.keys.entry(term).or_default().insert(key.clone());
        });
    }

    fn remove(&mut self, key: &ObjectKey, value: &P) {
        T::terms(key, value, &mut |term| {
            if let Some(keys) = self.keys.get_mut(&term) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&term);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct ByLength;

    impl Term<String> for ByLength {
        type Value = usize;

        fn terms(_: &ObjectKey, object: &String, found_by: &mut dyn FnMut(usize)) {
            found_by(object.len());
        }
    }

    /// What an object names, in its own namespace.
    struct ByReference;

    impl Term<String> for ByReference {
        type Value = ObjectKey;

        fn terms(key: &ObjectKey, object: &String, found_by: &mut dyn FnMut(ObjectKey)) {
            found_by(ObjectKey::new(key.namespace(), object));
        }
    }

    #[test]
    fn a_reference_by_name_is_found_in_the_namespace_of_the_object() {
        let mut index = By::<String, ByReference>::default();
        let (shop, pay) = (ObjectKey::new("shop", "a"), ObjectKey::new("pay", "a"));
        let password = "password".to_owned();
        index.insert(&shop, &password);
        index.insert(&pay, &password);
        assert_eq!(index.get("shop/password").collect::<Vec<_>>(), [&shop]);
        index.remove(&shop, &password);
        assert_eq!(index.values().collect::<Vec<_>>(), [&ObjectKey::new("pay", "password")]);
    }

    #[test]
    fn an_index_forgets_values_without_objects() {
        let mut index = By::<String, ByLength>::default();
        let (a, b) = (ObjectKey::cluster("a"), ObjectKey::cluster("b"));
        index.insert(&a, &"xx".to_owned());
        index.insert(&b, &"yy".to_owned());
        assert_eq!(index.get(&2).collect::<Vec<_>>(), [&a, &b]);
        index.remove(&a, &"xx".to_owned());
        index.remove(&b, &"yy".to_owned());
        assert_eq!(index.values().count(), 0);
    }
}
