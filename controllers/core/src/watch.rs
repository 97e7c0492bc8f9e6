//! One watch of a collection and everything that it feeds: caches of several projections, and other sinks.

use std::{
    any::{Any, TypeId},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use koord_resource::controller::ResourceKind;
use parking_lot::{Mutex, RwLock};

use crate::{
    cache::{Revision, Sizes},
    key::ObjectKey,
    panics::{PanicGuard, Place, Task},
    projection::{DecodeError, Metadata, Projection},
    reflector::{Failure, Initial, Reflector, Selection},
    refusal::{Obstacle, Refused},
    store::{Sink, Store},
    write::{Answer, Write},
};

/// The watch of a part of a collection, and what it feeds.
pub struct Watch {
    /// The kind that is watched.
    pub kind: ResourceKind,
    /// Which part of the collection is wanted.
    pub selection: Selection,
    /// The protocol; only its driver locks it.
    pub reflector: Mutex<Reflector>,
    /// Where its findings go.
    pub sink: Arc<dyn Sink>,
    sinks: Arc<Sinks>,
    /// Why the API server refuses it, and what helps.
    obstacle: Mutex<Obstacle>,
    /// What is idle where the API server does not serve the kind; none where the program does not work without it.
    idle_without: OnceLock<String>,
    /// Whether the program works where it may not watch the kind, too.
    is_dispensable: AtomicBool,
    /// Further versions in which the kind may be served.
    versions: OnceLock<&'static [&'static str]>,
    /// Which version is asked for: 0 for that of the kind.
    version: AtomicUsize,
    /// Ends what the driver has open; none while nobody runs it.
    interrupt: Mutex<Option<Interrupt>>,
}

/// Has the driver of a watch fetch the collection anew.
type Interrupt = Box<dyn Fn() + Send + Sync>;

/// The sinks of one watch. What one of them does with an object does not concern the others.
struct Sinks {
    kind: ResourceKind,
    attached: RwLock<Vec<Attached>>,
    guard: PanicGuard,
}

struct Attached {
    sink: Arc<dyn Sink>,
    metadata_only: bool,
    /// Set when the sink panicked: it gets a new list.
    panicked: Mutex<bool>,
    cache: Option<AttachedCache>,
}

struct AttachedCache {
    projection: TypeId,
    /// To which it is restricted.
    namespaces: Arc<[String]>,
    store: Arc<AnyStore>,
    compare: fn(&AnyStore, &AnyStore) -> Vec<ObjectKey>,
}

type AnyStore = dyn Any + Send + Sync;

// === impl Watch ===

impl Watch {
    /// A watch that feeds nothing yet.
    pub fn new(kind: ResourceKind, selection: Selection, initial: Initial, guard: PanicGuard) -> Self {
        let reflector = Mutex::new(Reflector::new(selection.clone(), initial));
        let sinks = Arc::new(Sinks { kind, attached: RwLock::default(), guard });
        Self {
            kind,
            selection,
            reflector,
            sink: Arc::clone(&sinks) as Arc<dyn Sink>,
            sinks,
            obstacle: Mutex::default(),
            idle_without: OnceLock::new(),
            is_dispensable: AtomicBool::new(false),
            versions: OnceLock::new(),
            version: AtomicUsize::new(0),
            interrupt: Mutex::default(),
        }
    }

    /// What ends the request that the driver has open, and has it fetch the collection anew.
    pub fn set_interrupt(&self, interrupt: impl Fn() + Send + Sync + 'static) {
        *self.interrupt.lock() = Some(Box::new(interrupt));
    }

    /// The collection is fetched anew now, instead of when the open watch has ended: what a panic left undone cannot wait.
    pub fn list_again(&self) {
        if let Some(interrupt) = &*self.interrupt.lock() {
            interrupt();
        }
    }

    /// The URL path of the collection.
    pub fn path(&self) -> String {
        self.asked().url_path(&self.selection.namespace, None)
    }

    /// The API server may serve the kind in these versions instead, whose objects are decoded alike. They are asked for by turns while it
    /// does not serve the one before. Only the first call counts.
    pub fn set_versions(&self, versions: &'static [&'static str]) {
        let _ = self.versions.set(versions);
    }

    /// The kind in the version that is asked for.
    pub fn asked(&self) -> ResourceKind {
        let further = self.version.load(Ordering::Relaxed).checked_sub(1);
        let version = further.and_then(|index| self.versions.get()?.get(index)).copied();
        ResourceKind { version: version.unwrap_or(self.kind.version), ..self.kind }
    }

    /// The API server does not serve the version that was asked for: the next one is asked for. Says whether that has not been before.
    pub fn next_version(&self) -> bool {
        let count = 1 + self.versions.get().map_or(0, |versions| versions.len());
        let next = (self.version.load(Ordering::Relaxed) + 1) % count;
        self.version.store(next, Ordering::Relaxed);
        next != 0
    }

    /// Whether objects of this version are decoded.
    pub fn decodes(&self, api_version: &str) -> bool {
        let versions = self.versions.get().into_iter().copied().flatten();
        let mut kinds = versions.map(|version| ResourceKind { version, ..self.kind });
        api_version == self.kind.api_version() || kinds.any(|kind| api_version == kind.api_version())
    }

    /// The API server refused the watch or its list. Gives the reason, with what helps, where it is for want of a definition
    /// or a permission and has not been given before.
    pub fn refused(&self, failure: &Failure) -> Option<String> {
        if failure.code == Some(404) && self.next_version() {
            return None;
        }
        let refused = Refused {
            kind: self.kind,
            subresource: "",
            namespace: &self.selection.namespace,
            verbs: &["list", "watch"],
            code: failure.code?,
            message: &failure.message,
        };
        self.obstacle.lock().met(refused).map(ToOwned::to_owned)
    }

    /// The API server serves the watch. Says whether it was refused before.
    pub fn served(&self) -> bool {
        self.obstacle.lock().gone()
    }

    /// Why the API server refuses it, and what helps; none while it does not.
    pub fn obstacle(&self) -> Option<String> {
        self.obstacle.lock().reason().map(ToOwned::to_owned)
    }

    /// The program works where the API server does not serve the kind: there are no objects then, and this part of the program,
    /// such as `plugin X`, is idle. Only the first call counts.
    pub fn set_optional(&self, idle: String) {
        let _ = self.idle_without.set(idle);
    }

    /// The program works where it may not watch the kind, too: this part of it is idle then.
    pub fn set_dispensable(&self, idle: String) {
        self.set_optional(idle);
        self.is_dispensable.store(true, Ordering::Relaxed);
    }

    /// Why the program may not watch it, and what helps; none where it may.
    pub fn forbidden(&self) -> Option<String> {
        let obstacle = self.obstacle.lock();
        obstacle.reason().filter(|_| obstacle.is_forbidden()).map(ToOwned::to_owned)
    }

    /// Whether the program works where the API server does not serve the kind.
    pub fn is_optional(&self) -> bool {
        self.idle_without.get().is_some()
    }

    /// What is idle because the API server does not serve the kind, or does not permit to watch one that is dispensable; none while it does, or where the
    /// program does not work without.
    pub fn idle(&self) -> Option<&str> {
        let obstacle = self.obstacle.lock();
        let is_idle = obstacle.is_absence() || obstacle.is_forbidden() && self.is_dispensable.load(Ordering::Relaxed);
        self.idle_without.get().filter(|_| is_idle).map(String::as_str)
    }

    /// Whether all objects are known: what it feeds is complete, or the program works without the kind ([`Watch::idle`]).
    pub fn is_complete(&self) -> bool {
        self.sink.synced() || self.idle().is_some()
    }

    /// The newest revision of which its sinks have been notified.
    pub fn revision(&self) -> Revision {
        self.reflector.lock().revision()
    }

    /// Whether nothing but the metadata of the objects is read: nothing else needs to be sent.
    pub fn metadata_only(&self) -> bool {
        self.sinks.attached.read().iter().all(|attached| attached.metadata_only)
    }

    /// The name of its task.
    pub fn task(&self) -> Task<'static> {
        Task("watch", self.kind.kind)
    }

    /// The keys of the objects that the caches of two watches know differently: for checking one against the other.
    pub fn differences(&self, other: &Watch) -> Vec<ObjectKey> {
        let (ours, theirs) = (self.sinks.attached.read(), other.sinks.attached.read());
        let caches = ours.iter().filter_map(|attached| attached.cache.as_ref());
        let twin = |cache: &AttachedCache| {
            let mut others = theirs.iter().filter_map(|attached| attached.cache.as_ref());
            others
                .find(|other| other.projection == cache.projection && other.namespaces == cache.namespaces)
                .map(|other| Arc::clone(&other.store))
        };
        caches.filter_map(|cache| Some((cache.compare)(&*cache.store, &*twin(cache)?))).flatten().collect()
    }

    /// The cache of a projection, which is attached to the watches that feed it when it is asked for the first time: one watch of
    /// everything, or one of each namespace that the cache is restricted to.
    pub fn shared_store<P: Projection>(
        watches: &[Arc<Watch>],
        make: impl FnOnce(&[String]) -> Store<P>,
    ) -> Arc<Store<P>> {
        let namespaces = watches.iter().map(|watch| watch.selection.namespace.clone());
        let namespaces: Arc<[String]> = namespaces.filter(|namespace| !namespace.is_empty()).collect();
        let known = watches.first().and_then(|watch| watch.known(&namespaces));
        known.unwrap_or_else(|| {
            let store = Arc::new(make(&namespaces));
            for watch in watches {
                watch.sinks.attached.write().push(Attached {
                    sink: store.feed_of(&watch.selection.namespace),
                    metadata_only: <P::Wire<'static> as Metadata<'static>>::ONLY,
                    panicked: Mutex::new(false),
                    cache: Some(AttachedCache {
                        projection: TypeId::of::<P>(),
                        namespaces: Arc::clone(&namespaces),
                        store: Arc::clone(&store) as Arc<AnyStore>,
                        compare: differences::<P>,
                    }),
                });
            }
            store
        })
    }

    /// The cache of a projection that is restricted to these namespaces, if it is attached already.
    fn known<P: Projection>(&self, namespaces: &[String]) -> Option<Arc<Store<P>>> {
        let sinks = self.sinks.attached.read();
        let mut caches = sinks.iter().filter_map(|attached| attached.cache.as_ref());
        let known = caches.find(|cache| cache.projection == TypeId::of::<P>() && *cache.namespaces == *namespaces);
        known.and_then(|cache| Arc::clone(&cache.store).downcast::<Store<P>>().ok())
    }

    /// Attaches a sink that is no cache. It gets whole objects.
    pub fn attach(&self, sink: Arc<dyn Sink>) {
        let attached = Attached { sink, metadata_only: false, panicked: Mutex::new(false), cache: None };
        self.sinks.attached.write().push(attached);
    }
}

fn differences<P: Projection>(one: &AnyStore, another: &AnyStore) -> Vec<ObjectKey> {
    match (one.downcast_ref::<Store<P>>(), another.downcast_ref::<Store<P>>()) {
        (Some(one), Some(another)) => one.read().differences(&another.read()),
        _ => Vec::new(),
    }
}

// === impl Sinks ===

impl Sinks {
    /// Hands something to every sink. Gives the first answer, which is as good as any: all decode the same name.
    fn each<R>(&self, hand: impl Fn(&dyn Sink) -> R) -> Option<R> {
        let mut first = None;
        for attached in &*self.attached.read() {
            let handed = self.guard.catch(Place::Listener, Task("watch", self.kind.kind), || hand(&*attached.sink));
            match handed {
                Ok(answer) => _ = first.get_or_insert(answer),
                Err(_) => *attached.panicked.lock() = true,
            }
        }
        first
    }
}

impl Sink for Sinks {
    fn upsert(&self, raw: &str) -> Result<Revision, DecodeError> {
        self.each(|sink| sink.upsert(raw)).unwrap_or_else(|| Err(DecodeError::new("object", "was not taken")))
    }

    fn remove(&self, raw: &str) -> Result<Revision, DecodeError> {
        self.each(|sink| sink.remove(raw)).unwrap_or_else(|| Err(DecodeError::new("object", "was not taken")))
    }

    fn wrote(&self, write: &Write, answer: &Answer) {
        self.each(|sink| sink.wrote(write, answer));
    }

    fn begin_list(&self, forget_revisions: bool) {
        self.attached.read().iter().for_each(|attached| *attached.panicked.lock() = false);
        self.each(|sink| sink.begin_list(forget_revisions));
    }

    fn end_list(&self) {
        self.each(|sink| sink.end_list());
    }

    fn synced(&self) -> bool {
        self.attached.read().iter().all(|attached| attached.sink.synced())
    }

    fn holds(&self, key: &ObjectKey, revision: Revision) -> bool {
        self.attached.read().iter().all(|attached| attached.sink.holds(key, revision))
    }

    fn sizes(&self) -> Sizes {
        self.attached.read().iter().map(|attached| attached.sink.sizes()).fold(Sizes::default(), |sum, sizes| Sizes {
            objects: sum.objects.max(sizes.objects),
            quarantined: sum.quarantined.max(sizes.quarantined),
            strings: sum.strings + sizes.strings,
        })
    }

    fn recover(&self) -> bool {
        let mut wants_list = false;
        for attached in &*self.attached.read() {
            let recovered =
                self.guard.catch(Place::Listener, Task("watch", self.kind.kind), || attached.sink.recover());
            wants_list |= recovered.unwrap_or(true) || *attached.panicked.lock();
        }
        wants_list
    }

    fn owes(&self) -> bool {
        self.attached.read().iter().any(|attached| *attached.panicked.lock() || attached.sink.owes())
    }
}
