//! Objects of the API beside nodes and pods, by their type: what plugins read.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
};

use koord_core::{key::ObjectKey, uid::Uid};

/// An object of some type.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Distinguishes it from another of the same name.
    pub uid: Uid,
    /// Whether it is being deleted.
    pub deleting: bool,
    type_: TypeId,
    value: Arc<dyn Any + Send + Sync>,
}

/// A change of an object: one that was added, changed or deleted.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// As it was; none for a new one.
    pub old: Option<Object>,
    /// As it is; none after its deletion.
    pub new: Option<Object>,
}

/// All objects, by type and key.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    by_type: BTreeMap<TypeId, BTreeMap<ObjectKey, Object>>,
    /// How often objects of a type have changed.
    changes: BTreeMap<TypeId, u64>,
}

impl Object {
    /// An object of the type of its value.
    pub fn new<T: Any + Send + Sync>(key: ObjectKey, uid: Uid, deleting: bool, value: Arc<T>) -> Self {
        Self { key, uid, deleting, type_: TypeId::of::<T>(), value }
    }

    /// Its value, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }
}

impl ObjectChange {
    /// The uid of the object that is no more: it was deleted, or another has its name.
    pub fn gone(&self) -> Option<&Uid> {
        let old = self.old.as_ref().map(|old| &old.uid)?;
        (self.new.as_ref().map(|new| &new.uid) != Some(old)).then_some(old)
    }

    /// What the object was and is, if it is of this type.
    pub fn of<T: Any>(&self) -> Option<(Option<&T>, Option<&T>)> {
        let either = self.new.as_ref().or(self.old.as_ref())?;
        (either.type_ == TypeId::of::<T>())
            .then(|| (self.old.as_ref().and_then(Object::get), self.new.as_ref().and_then(Object::get)))
    }

    /// The type of the object; that of nothing where there is none.
    pub fn type_(&self) -> TypeId {
        self.new.as_ref().or(self.old.as_ref()).map_or(TypeId::of::<()>(), |object| object.type_)
    }

    /// The key of the object.
    pub fn key(&self) -> Option<&ObjectKey> {
        self.new.as_ref().or(self.old.as_ref()).map(|object| &object.key)
    }
}

impl Objects {
    /// The object of this type and name.
    pub fn get<T: Any>(&self, key: &str) -> Option<&T> {
        self.entry::<T>(key)?.get()
    }

    /// The object of this type and name, with its uid.
    pub fn entry<T: Any>(&self, key: &str) -> Option<&Object> {
        self.by_type.get(&TypeId::of::<T>())?.get(key)
    }

    /// All objects of this type, by key.
    pub fn of<T: Any>(&self) -> impl Iterator<Item = (&ObjectKey, &T)> {
        let all = self.by_type.get(&TypeId::of::<T>()).into_iter().flatten();
        all.filter_map(|(key, object)| Some((key, object.get()?)))
    }

    /// How often objects of this type have changed.
    pub fn changes<T: Any>(&self) -> u64 {
        self.changes.get(&TypeId::of::<T>()).copied().unwrap_or(0)
    }

    /// An object was added or changed.
    pub fn set(&mut self, object: Object) -> ObjectChange {
        *self.changes.entry(object.type_).or_default() += 1;
        let old = self.by_type.entry(object.type_).or_default().insert(object.key.clone(), object.clone());
        ObjectChange { old, new: Some(object) }
    }

    /// An object is gone.
    pub fn remove(&mut self, type_: TypeId, key: &str) -> Option<ObjectChange> {
        let old = self.by_type.get_mut(&type_)?.remove(key)?;
        *self.changes.entry(type_).or_default() += 1;
        Some(ObjectChange { old: Some(old), new: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_by_type_and_name() {
        let mut objects = Objects::default();
        let object = |value: u32| Object::new(ObjectKey::cluster("a"), Uid::from("1"), false, Arc::new(value));
        assert_eq!(objects.set(object(1)).of::<u32>(), Some((None, Some(&1))));
        let changed = objects.set(object(2));
        assert_eq!((changed.of::<u32>(), changed.of::<i64>()), (Some((Some(&1), Some(&2))), None));
        assert_eq!((objects.get::<u32>("a"), objects.get::<i64>("a"), objects.get::<u32>("b")), (Some(&2), None, None));
        assert_eq!((objects.of::<u32>().count(), objects.changes::<u32>(), objects.changes::<i64>()), (1, 2, 0));
        assert_eq!(
            objects.remove(TypeId::of::<u32>(), "a").and_then(|gone| gone.of::<u32>().map(|(old, _)| old.copied())),
            Some(Some(2))
        );
        assert!(objects.remove(TypeId::of::<u32>(), "a").is_none() && objects.get::<u32>("a").is_none());
    }
}
