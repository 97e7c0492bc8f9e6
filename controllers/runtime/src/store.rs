//! A cache that parts of a program share: written by one watch, read by many, heard by controllers.

use std::sync::atomic::{AtomicBool, Ordering};

use koord_resource::controller::ResourceKind;
use parking_lot::{RwLock, RwLockReadGuard};

use crate::{
    cache::{Applied, Cache, Change, Quarantined, Revision},
    key::ObjectKey,
    projection::{Projection, Unreadable},
};

/// Where a watch puts what it hears. All methods take JSON text of one object.
pub trait Sink: Send + Sync {
    /// An object was listed, added or modified. Gives its revision; an error means that not even its name can be read.
    fn upsert(&self, raw: &str) -> Result<Revision, Unreadable>;
    /// An object was deleted.
    fn remove(&self, raw: &str) -> Result<Revision, Unreadable>;
    /// This program made an object; see [`Cache::await_object`].
    fn made(&self, _kind: &ResourceKind, _key: &ObjectKey) {}
    /// A whole list follows; see [`Cache::begin_list`].
    fn begin_list(&self, forget_revisions: bool);
    /// The list is complete: from now on the cache can be believed.
    fn end_list(&self);
    /// Whether one list was completed.
    fn synced(&self) -> bool;
    /// How many objects are known, how many are quarantined, and how many texts they share.
    fn sizes(&self) -> Sizes;
}

/// Figures of a cache, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Objects that are known.
    pub objects: usize,
    /// Objects that cannot be read.
    pub quarantined: usize,
    /// Different texts that the objects share.
    pub strings: usize,
}

type Listener<P> = Box<dyn Fn(&Change<P>) + Send + Sync>;
type Alarm = Box<dyn Fn(&ObjectKey, &Quarantined) + Send + Sync>;

/// A shared [`Cache`].
pub struct Store<P: Projection> {
    cache: RwLock<Cache<P>>,
    listeners: RwLock<Vec<Listener<P>>>,
    alarms: RwLock<Vec<Alarm>>,
    synced: AtomicBool,
}

impl<P: Projection> Default for Store<P> {
    fn default() -> Self {
        Self {
            cache: RwLock::default(),
            listeners: RwLock::default(),
            alarms: RwLock::default(),
            synced: AtomicBool::new(false),
        }
    }
}

impl<P: Projection> Store<P> {
    /// A consistent view. Keep it short: the watch waits meanwhile.
    pub fn read(&self) -> RwLockReadGuard<'_, Cache<P>> {
        self.cache.read()
    }

    /// Calls back after every change, in order, outside of the cache's lock.
    pub fn listen(&self, listener: impl Fn(&Change<P>) + Send + Sync + 'static) {
        self.listeners.write().push(Box::new(listener));
    }

    /// Calls back when an object cannot be read.
    pub fn on_quarantine(&self, alarm: impl Fn(&ObjectKey, &Quarantined) + Send + Sync + 'static) {
        self.alarms.write().push(Box::new(alarm));
    }

    fn tell(&self, applied: &Applied<P>) {
        match applied {
            Applied::Changed(change) => self.listeners.read().iter().for_each(|listener| listener(change)),
            Applied::Quarantined(key, quarantined) => {
                self.alarms.read().iter().for_each(|alarm| alarm(key, quarantined));
            }
            Applied::Unchanged => {}
        }
    }
}

impl<P: Projection> Sink for Store<P> {
    fn upsert(&self, raw: &str) -> Result<Revision, Unreadable> {
        let (revision, applied) = self.cache.write().upsert(raw)?;
        self.tell(&applied);
        Ok(revision)
    }

    fn remove(&self, raw: &str) -> Result<Revision, Unreadable> {
        let (revision, applied) = self.cache.write().remove(raw)?;
        self.tell(&applied);
        Ok(revision)
    }

    fn made(&self, kind: &ResourceKind, key: &ObjectKey) {
        if *kind == P::KIND {
            self.cache.write().await_object(key);
        }
    }

    fn begin_list(&self, forget_revisions: bool) {
        self.cache.write().begin_list(forget_revisions);
    }

    fn end_list(&self) {
        let gone = self.cache.write().end_list();
        for change in gone {
            self.tell(&Applied::Changed(change));
        }
        self.synced.store(true, Ordering::Release);
    }

    fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    fn sizes(&self) -> Sizes {
        let cache = self.cache.read();
        Sizes { objects: cache.len(), quarantined: cache.quarantine_len(), strings: cache.strings_len() }
    }
}
