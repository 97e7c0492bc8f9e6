//! All watches and controllers of a program, wired together, before any socket or task exists.
//!
//! The manager puts tasks around this; the step simulation drives it by hand.

use std::{
    any::{Any, TypeId},
    sync::{Arc, OnceLock, Weak},
};

use koord_resource::controller::{ControllerSpec, ResourceKind};
use parking_lot::Mutex;

use crate::{
    cache::{Change, Quarantined},
    clock::SharedClock,
    controller::{Controller, Reaction, Worker},
    events::{Event, EventSink, EventType},
    key::ObjectKey,
    metrics::Metrics,
    projection::{Metadata, Projection},
    random::Random,
    reflector::{Initial, Reflector, Selection},
    store::{Sink, Store},
    trace::Tracer,
};

/// A cache and the protocol that keeps it.
pub struct Watch {
    /// The kind that is watched.
    pub kind: ResourceKind,
    /// Which part of the collection is wanted.
    pub selection: Selection,
    /// Whether nothing but the metadata of the objects is read: nothing else needs to be sent.
    pub metadata_only: bool,
    /// The protocol; only its shell locks it.
    pub reflector: Mutex<Reflector>,
    /// Where its findings go.
    pub sink: Arc<dyn Sink>,
    projection: TypeId,
    store: Arc<AnyStore>,
    compare: fn(&AnyStore, &AnyStore) -> Vec<ObjectKey>,
}

type AnyStore = dyn Any + Send + Sync;

impl Watch {
    /// The keys of the objects that the caches of two watches know differently: for checking one against the other.
    /// Nothing when they are caches of different projections.
    pub fn differences(&self, other: &Watch) -> Vec<ObjectKey> {
        (self.compare)(&*self.store, &*other.store)
    }

    /// The URL path of the collection.
    pub fn path(&self) -> String {
        self.kind.url_path(&self.selection.namespace, None)
    }
}

/// See the module.
pub struct Core {
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
    tracer: Tracer,
    events: Arc<dyn EventSink>,
    initial: Initial,
    namespace: String,
    watches: Vec<Arc<Watch>>,
    workers: Vec<Arc<Worker>>,
}

impl Core {
    /// Nothing is watched yet.
    pub fn new(clock: SharedClock, random: Random, metrics: Metrics, events: Arc<dyn EventSink>) -> Self {
        let (initial, namespace) = (Initial::default(), String::new());
        let (tracer, watches, workers) = (Tracer::default(), Vec::new(), Vec::new());
        Self { clock, random, metrics, tracer, events, initial, namespace, watches, workers }
    }

    /// Records traces, of controllers that are added from now on.
    pub fn trace_by(&mut self, tracer: Tracer) {
        self.tracer = tracer;
    }

    /// What records traces; off unless [`Core::trace_by`] was called.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Restricts caches of namespaced kinds to one namespace, for watches that are added from now on; empty for none.
    /// A cache for which a namespace is named where it is asked for is in that namespace all the same, and objects of
    /// the cluster are seen whatever happens.
    pub fn restrict_to(&mut self, namespace: &str) {
        namespace.clone_into(&mut self.namespace);
    }

    /// How the first content of the caches is fetched; for watches that are added from now on.
    pub fn set_initial(&mut self, initial: Initial) {
        self.initial = initial;
    }

    /// The clock of the controllers.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The source of randomness.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All watches, in the order in which they were first asked for.
    pub fn watches(&self) -> &[Arc<Watch>] {
        &self.watches
    }

    /// All controllers, in the order in which they were added.
    pub fn workers(&self) -> &[Arc<Worker>] {
        &self.workers
    }

    /// Whether every cache is complete.
    pub fn synced(&self) -> bool {
        self.watches.iter().all(|watch| watch.sink.synced())
    }

    /// The shared cache of a projection, watched from the start of the program on. Who asks for the same part of
    /// the same projection gets the same cache.
    pub fn store<P: Projection>(&mut self, selection: &Selection) -> Arc<Store<P>> {
        let mut selection = selection.clone();
        if P::KIND.namespaced && selection.namespace.is_empty() {
            selection.namespace.clone_from(&self.namespace);
        }
        let known =
            self.watches.iter().find(|watch| watch.projection == TypeId::of::<P>() && watch.selection == selection);
        if let Some(store) = known.and_then(|watch| Arc::clone(&watch.store).downcast::<Store<P>>().ok()) {
            return store;
        }
        let store = Arc::new(Store::<P>::default());
        let events = Arc::clone(&self.events);
        store.on_quarantine(move |key, quarantined| quarantine::<P>(&*events, key, quarantined));
        self.watches.push(Arc::new(Watch {
            kind: P::KIND,
            selection: selection.clone(),
            metadata_only: <P::Wire<'static> as Metadata<'static>>::ONLY,
            reflector: Mutex::new(Reflector::new(selection, self.initial)),
            sink: Arc::clone(&store) as Arc<dyn Sink>,
            projection: TypeId::of::<P>(),
            store: Arc::clone(&store) as Arc<AnyStore>,
            compare: differences::<P>,
        }));
        store
    }

    /// Adds a controller. `component` names it in events; `wire` asks for caches, connects them, and makes it.
    pub fn add<C: Controller, E>(
        &mut self,
        spec: ControllerSpec,
        component: &'static str,
        wire: impl FnOnce(&mut Wiring<'_>) -> Result<Arc<C>, E>,
    ) -> Result<Arc<Worker>, E> {
        let slot = Arc::new(OnceLock::new());
        let mut wiring = Wiring { core: self, slot: Arc::clone(&slot), reads: Vec::new() };
        let controller = wire(&mut wiring)?;
        let reads = wiring.reads;
        let surroundings =
            (Arc::clone(&self.clock), self.metrics.clone(), self.tracer.clone(), Arc::clone(&self.events));
        let worker = Arc::new(Worker::new(spec, component, controller, reads, surroundings));
        // The slot was made here and is filled once.
        let _ = slot.set(Arc::downgrade(&worker));
        self.workers.push(Arc::clone(&worker));
        Ok(worker)
    }

    /// Brings gauges up to date; before metrics are served.
    pub fn refresh_metrics(&self) {
        let number = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        for watch in &self.watches {
            let (sizes, kind) = (watch.sink.sizes(), &[watch.kind.kind]);
            let restarts = i64::try_from(watch.reflector.lock().restarts()).unwrap_or(i64::MAX);
            self.metrics.watch_restarts.with_label_values(kind).set(restarts);
            self.metrics.cache_objects.with_label_values(kind).set(number(sizes.objects));
            self.metrics.cache_quarantined.with_label_values(kind).set(number(sizes.quarantined));
            self.metrics.cache_strings.with_label_values(kind).set(number(sizes.strings));
        }
        self.workers.iter().for_each(|worker| worker.refresh_metrics());
    }
}

/// Connects a controller with the caches it reads.
pub struct Wiring<'a> {
    core: &'a mut Core,
    slot: Arc<OnceLock<Weak<Worker>>>,
    reads: Vec<Arc<dyn Sink>>,
}

impl Wiring<'_> {
    /// A cache of all objects of a kind. The controller makes no decision before it is complete.
    pub fn reads<P: Projection>(&mut self) -> Arc<Store<P>> {
        self.reads_some(&Selection::default())
    }

    /// A cache of some objects of a kind.
    pub fn reads_some<P: Projection>(&mut self, selection: &Selection) -> Arc<Store<P>> {
        let store = self.core.store::<P>(selection);
        self.reads.push(Arc::clone(&store) as Arc<dyn Sink>);
        store
    }

    /// Says what a change in a cache leads to.
    pub fn on<P: Projection>(
        &self,
        store: &Store<P>,
        react: impl Fn(&Change<P>, &mut Reaction) + Send + Sync + 'static,
    ) {
        let slot = Arc::clone(&self.slot);
        let tracer = self.core.tracer.clone();
        store.listen(move |change| {
            if let Some(worker) = slot.get().and_then(Weak::upgrade) {
                let mut reaction = Reaction::default();
                react(change, &mut reaction);
                if let (true, Some(new)) = (tracer.is_on(), &change.new) {
                    reaction.cause = tracer.seen(P::KIND.kind, change.key.as_str(), &new.uid.to_string(), new.revision);
                }
                worker.react(reaction);
            }
        });
    }

    /// The clock of the controllers.
    pub fn clock(&self) -> &SharedClock {
        &self.core.clock
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.core.metrics
    }

    /// The source of randomness.
    pub fn random(&self) -> &Random {
        &self.core.random
    }
}

fn differences<P: Projection>(one: &AnyStore, another: &AnyStore) -> Vec<ObjectKey> {
    match (one.downcast_ref::<Store<P>>(), another.downcast_ref::<Store<P>>()) {
        (Some(one), Some(another)) => one.read().differences(&another.read()),
        _ => Vec::new(),
    }
}

fn quarantine<P: Projection>(events: &dyn EventSink, key: &ObjectKey, quarantined: &Quarantined) {
    tracing::warn!(kind = P::KIND.kind, %key, reason = %quarantined.reason, "an object cannot be read");
    let message =
        format!("this {} cannot be read and is ignored until it is mended: {}", P::KIND.kind, quarantined.reason);
    let (kind, key, uid) = (P::KIND, key.clone(), quarantined.uid.clone());
    let event = Event { kind, key, uid, type_: EventType::Warning, reason: "Unreadable", message };
    events.record("koord-runtime", event);
}
