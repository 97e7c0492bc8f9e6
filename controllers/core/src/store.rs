//! A cache that parts of a program share: written by one watch, read by many; controllers are notified of its changes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::{
    cache::{Applied, Cache, Change, Decoded, Entry, Quarantined, Revision, SharedStrings, Sizes},
    key::ObjectKey,
    panics::{PanicGuard, Place, Task},
    projection::{DecodeError, Projection},
    write::{Action, Answer, Write, comparable},
};

/// Where a watch puts what it receives. All methods take JSON text of one object.
pub trait Sink: Send + Sync {
    /// An object was listed, added or modified. Gives its revision; an error means that not even its name can be decoded.
    fn upsert(&self, raw: &str) -> Result<Revision, DecodeError>;
    /// An object was deleted.
    fn remove(&self, raw: &str) -> Result<Revision, DecodeError>;
    /// A write of this program succeeded; see [`Cache::expect_write`].
    fn wrote(&self, _write: &Write, _answer: &Answer) {}
    /// A whole list follows; see [`Cache::begin_list`].
    fn begin_list(&self, forget_revisions: bool);
    /// The list is complete: from now on the cache can be trusted.
    fn end_list(&self);
    /// Whether one list was completed.
    fn synced(&self) -> bool;
    /// Whether an object is known as it was at this revision, or later. What keeps no objects lacks none.
    fn holds(&self, _key: &ObjectKey, _revision: Revision) -> bool {
        true
    }
    /// How many objects are known, how many are quarantined, and how many texts they share.
    fn sizes(&self) -> Sizes;
    /// Repeats what was left undone because something panicked. Says whether a new list is needed for the rest.
    fn recover(&self) -> bool {
        false
    }
    /// Whether something was left undone because something panicked, which [`Sink::recover`] or a new list will repeat.
    fn owes(&self) -> bool {
        false
    }
}

type Alarm = Box<dyn Fn(&ObjectKey, &Quarantined) + Send + Sync>;

/// A shared [`Cache`].
pub struct Store<P: Projection> {
    cache: RwLock<Cache<P>>,
    strings: SharedStrings,
    listeners: RwLock<Vec<Listener<P>>>,
    alarms: RwLock<Vec<Alarm>>,
    synced: AtomicBool,
    guard: PanicGuard,
}

type Notify<P> = dyn Fn(&Change<P>) + Send + Sync;

/// Is notified of changes, and again of those during which it panicked.
struct Listener<P> {
    notify: Box<Notify<P>>,
    /// Objects of whose change it was not notified, with the state that it knows; owned and updated by the watch's task.
    missed: Mutex<BTreeMap<ObjectKey, Option<Entry<P>>>>,
}

impl<P: Projection> Default for Store<P> {
    fn default() -> Self {
        Self::of_program("", PanicGuard::default())
    }
}

impl<P: Projection> Store<P> {
    /// An empty store of a program that writes under the name `field_manager`, in which panics are counted.
    pub fn of_program(field_manager: &'static str, guard: PanicGuard) -> Self {
        Self::in_namespaces(&[], field_manager, guard)
    }

    /// The same, restricted to some namespaces, each of which has a watch of its own ([`Store::feed_of`]); with none it knows all.
    pub fn in_namespaces(namespaces: &[String], field_manager: &'static str, guard: PanicGuard) -> Self {
        let cache = Cache::of_program(field_manager, guard.clone()).in_namespaces(namespaces);
        Self {
            strings: SharedStrings::clone(cache.strings()),
            cache: RwLock::new(cache),
            listeners: RwLock::default(),
            alarms: RwLock::default(),
            synced: AtomicBool::new(false),
            guard,
        }
    }

    /// A consistent view. Keep it short: the watch waits meanwhile.
    pub fn read(&self) -> RwLockReadGuard<'_, Cache<P>> {
        self.cache.read()
    }

    /// Calls back after every change, in order, outside of the cache's lock. A listener that panics is called again for
    /// the object with its next change, or when the watch is opened again.
    pub fn listen(&self, listener: impl Fn(&Change<P>) + Send + Sync + 'static) {
        self.listeners.write().push(Listener { notify: Box::new(listener), missed: Mutex::default() });
    }

    /// Calls back when an object cannot be decoded.
    pub fn on_quarantine(&self, alarm: impl Fn(&ObjectKey, &Quarantined) + Send + Sync + 'static) {
        self.alarms.write().push(Box::new(alarm));
    }

    /// Where the watch of one of its namespaces puts what it receives.
    pub fn feed_of(self: &Arc<Self>, namespace: &str) -> Arc<dyn Sink> {
        match namespace {
            "" => Arc::clone(self) as Arc<dyn Sink>,
            namespace => Arc::new(Feed { store: Arc::clone(self), namespace: namespace.into() }),
        }
    }

    fn end_list_of(&self, part: &str) {
        let (gone, is_complete) = {
            let mut cache = self.cache.write();
            (cache.end_list(part), cache.is_complete())
        };
        for change in gone {
            self.notify(Applied::Changed(change));
        }
        self.synced.fetch_or(is_complete, Ordering::Release);
    }

    fn notify(&self, applied: Applied<P>) {
        match applied {
            Applied::Changed(change) => {
                self.listeners.read().iter().for_each(|listener| listener.notify(&change, &self.guard));
            }
            Applied::Quarantined(key, quarantined) => {
                for alarm in &*self.alarms.read() {
                    // The log line and the metric of the panic are all that is left of the alarm.
                    let _ =
                        self.guard.catch(Place::Listener, Task("watch", P::KIND.kind), || alarm(&key, &quarantined));
                }
            }
            Applied::Unchanged => {}
        }
    }
}

impl<P: Projection> Listener<P> {
    fn notify(&self, change: &Change<P>, guard: &PanicGuard) {
        let missed = self.missed.lock().remove(&change.key);
        let since_missed;
        let change = match missed {
            None => change,
            Some(old) => {
                since_missed = Change { key: change.key.clone(), old, new: change.new.clone(), again: true };
                &since_missed
            }
        };
        if guard.catch(Place::Listener, Task("watch", P::KIND.kind), || (self.notify)(change)).is_err() {
            self.missed.lock().insert(change.key.clone(), change.old.clone());
        }
    }

    fn notify_again(&self, store: &Store<P>) {
        let missed: Vec<ObjectKey> = self.missed.lock().keys().cloned().collect();
        for key in missed {
            let new = store.read().get(key.as_str()).cloned();
            self.notify(&Change { key, old: None, new, again: true }, &store.guard);
        }
    }
}

impl<P: Projection> Sink for Store<P> {
    fn upsert(&self, raw: &str) -> Result<Revision, DecodeError> {
        let decoded = Decoded::read(raw, &mut self.strings.lock(), &self.guard)?;
        let revision = decoded.revision();
        let applied = self.cache.write().apply(decoded);
        self.notify(applied);
        Ok(revision)
    }

    fn remove(&self, raw: &str) -> Result<Revision, DecodeError> {
        let (revision, applied) = self.cache.write().remove(raw)?;
        self.notify(applied);
        Ok(revision)
    }

    fn wrote(&self, write: &Write, answer: &Answer) {
        if write.kind != P::KIND {
            return;
        }
        match &write.action {
            Action::Apply { object, .. } => self.cache.write().applied(&write.key, &comparable(object), &answer.body),
            Action::Patch { patch, .. } => self.cache.write().expect_patch(&write.key, patch),
            Action::Create(_) | Action::StrategicPatch { .. } | Action::Update { .. } => {
                self.cache.write().expect_write(&write.key);
            }
            Action::Delete(_) | Action::Bind { .. } | Action::Evict(_) => {}
        }
    }

    fn begin_list(&self, forget_revisions: bool) {
        self.cache.write().begin_list("", forget_revisions);
    }

    fn end_list(&self) {
        self.end_list_of("");
    }

    fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    fn holds(&self, key: &ObjectKey, revision: Revision) -> bool {
        let cache = self.read();
        let known = cache.get(key.as_str()).map(|entry| entry.revision);
        let quarantined = cache.quarantined(key.as_str()).map(|quarantined| quarantined.revision);
        known.max(quarantined) >= Some(revision)
    }

    fn sizes(&self) -> Sizes {
        self.read().sizes()
    }

    fn recover(&self) -> bool {
        self.listeners.read().iter().for_each(|listener| listener.notify_again(self));
        self.cache.read().wants_list()
    }

    fn owes(&self) -> bool {
        self.cache.read().wants_list()
            || self.listeners.read().iter().any(|listener| !listener.missed.lock().is_empty())
    }
}

/// One namespace of a store that is restricted to some.
struct Feed<P: Projection> {
    store: Arc<Store<P>>,
    namespace: Box<str>,
}

impl<P: Projection> Sink for Feed<P> {
    fn upsert(&self, raw: &str) -> Result<Revision, DecodeError> {
        self.store.upsert(raw)
    }

    fn remove(&self, raw: &str) -> Result<Revision, DecodeError> {
        self.store.remove(raw)
    }

    fn begin_list(&self, forget_revisions: bool) {
        self.store.cache.write().begin_list(&self.namespace, forget_revisions);
    }

    fn end_list(&self) {
        self.store.end_list_of(&self.namespace);
    }

    fn synced(&self) -> bool {
        self.store.read().is_listed(&self.namespace)
    }

    fn holds(&self, key: &ObjectKey, revision: Revision) -> bool {
        self.store.holds(key, revision)
    }

    fn sizes(&self) -> Sizes {
        self.store.read().sizes_of(&self.namespace)
    }

    fn recover(&self) -> bool {
        self.store.recover()
    }

    fn owes(&self) -> bool {
        self.store.owes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use koord_resource::controller::ResourceKind;

    use super::*;
    use crate::{intern::Interner, panics::Injector, projection::MetadataOnly};

    #[derive(Debug, PartialEq)]
    struct Generation(i64);

    impl Projection for Generation {
        const KIND: ResourceKind = ResourceKind::NODE;
        type Wire<'a> = MetadataOnly<'a>;
        type Index = ();

        fn project(wire: MetadataOnly<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
            assert_ne!(wire.metadata.generation, 13, "unlucky");
            Ok(Self(wire.metadata.generation))
        }
    }

    fn node(revision: u64, generation: i64) -> String {
        format!(r#"{{"metadata":{{"name":"n","uid":"u","resourceVersion":"{revision}","generation":{generation}}}}}"#)
    }

    #[test]
    fn an_object_whose_projection_panics_is_quarantined_until_the_next_list() {
        let store = Store::<Generation>::default();
        store.upsert(&node(1, 1)).unwrap();
        assert_eq!(store.upsert(&node(2, 13)), Ok(Revision(2)));
        assert_eq!(store.read().get("n").unwrap().value.0, 1, "the last good value stays");
        let reason = store.read().quarantined("n").unwrap().reason.to_string();
        assert!(reason.starts_with("object: the projection panicked: ") && reason.contains("unlucky"), "{reason}");
        assert!(store.owes() && store.recover(), "a new list decodes it again");
        store.begin_list(false);
        store.upsert(&node(3, 3)).unwrap();
        store.end_list();
        assert!(!store.owes() && !store.recover() && store.synced());
    }

    #[test]
    fn a_listener_that_panics_is_notified_of_what_it_missed() {
        let (store, seen) = (Store::<Generation>::default(), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&seen);
        let calls = AtomicU32::new(0);
        store.listen(move |change| {
            assert!(![1, 2].contains(&calls.fetch_add(1, Ordering::Relaxed)), "not now");
            let generation = |entry: &Option<Entry<Generation>>| entry.as_ref().map(|entry| entry.value.0);
            log.lock().push((generation(&change.old), generation(&change.new)));
        });
        for generation in 1..=3 {
            store.upsert(&node(generation, generation.cast_signed())).unwrap();
        }
        assert_eq!(*seen.lock(), [(None, Some(1))], "it missed two changes");
        assert!(store.owes());
        store.recover();
        assert!(!store.owes());
        store.recover();
        assert_eq!(*seen.lock(), [(None, Some(1)), (Some(1), Some(3))], "from what it knows to what is");
    }

    #[test]
    fn an_injected_panic_strikes_each_place_of_a_store() {
        for place in [Place::Projection, Place::Listener] {
            let injector: Injector = Arc::new(move |at| assert_ne!(at, place));
            let store = Store::<Generation>::of_program("", PanicGuard::default().injecting(injector));
            store.listen(|_| {});
            store.upsert(&node(1, 1)).unwrap();
            assert_eq!(store.read().quarantined("n").is_some(), place == Place::Projection);
            assert_eq!(store.listeners.read()[0].missed.lock().len(), usize::from(place == Place::Listener));
        }
    }
}
