//! All watches and controllers of a program, wired together, before any socket or task exists.
//!
//! The manager runs tasks around this; the step simulation drives it by hand.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use koord_resource::controller::{ControllerSpec, ResourceKind};

use crate::{
    Caches, Watch,
    cache::{Change, Quarantined, Sizes},
    clock::{Moment, SharedClock},
    controller::{Controller, Requests, Wired, Worker},
    effect::{EffectCounts, EffectLimits, Effects},
    effects::{AnyEffects, Runner},
    events::{Event, EventSink, EventType, Regarded},
    failures::Failures,
    key::ObjectKey,
    metrics::Metrics,
    panics::{Injector, PanicGuard},
    projection::Projection,
    random::Random,
    reflector::{Initial, Selection},
    store::{Sink, Store},
    trace::Tracer,
};

/// A watch that has had no contact with the API server for this long is stale. A quiet one is opened anew every five minutes.
const STALE: Duration = Duration::from_mins(15);
/// The task of a watch that has not done anything for this long has stalled: its longest request, pause or silence is shorter.
const STALLED: Duration = Duration::from_mins(15);

/// The watches and controllers of a program.
pub struct Core {
    field_manager: &'static str,
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
    tracer: Tracer,
    events: Arc<dyn EventSink>,
    guard: PanicGuard,
    initial: Initial,
    namespaces: BTreeSet<String>,
    watches: Vec<Arc<Watch>>,
    caches: Caches,
    workers: Vec<Arc<Worker>>,
    effects: Vec<Arc<dyn AnyEffects>>,
    failures: Arc<Failures>,
    /// What brings metrics up to date that are computed when they are asked for.
    before_metrics: Vec<Box<dyn Fn() + Send + Sync>>,
    started: Moment,
}

impl Core {
    /// Nothing is watched yet. The program writes under the name `field_manager`.
    pub fn new(
        field_manager: &'static str,
        clock: SharedClock,
        random: Random,
        metrics: Metrics,
        events: Arc<dyn EventSink>,
    ) -> Self {
        let (initial, namespaces) = (Initial::default(), BTreeSet::new());
        let (tracer, watches, workers, effects) = (Tracer::default(), Vec::new(), Vec::new(), Vec::new());
        let (guard, started) = (metrics.panic_guard(), clock.moment());
        Self {
            field_manager,
            clock,
            random,
            metrics,
            tracer,
            events,
            guard,
            initial,
            namespaces,
            watches,
            caches: Caches::default(),
            workers,
            effects,
            failures: Arc::default(),
            before_metrics: Vec::new(),
            started,
        }
    }

    /// Injects panics, in tests, into everything that is added from now on.
    pub fn inject_panics(&mut self, injector: Injector) {
        self.guard = self.guard.clone().injecting(injector);
    }

    /// Catches and counts panics.
    pub fn guard(&self) -> &PanicGuard {
        &self.guard
    }

    /// Records traces, of controllers that are added from now on.
    pub fn trace_by(&mut self, tracer: Tracer) {
        self.tracer = tracer;
    }

    /// What records traces; off unless [`Core::trace_by`] was called.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Restricts caches of namespaced kinds to these namespaces, for watches that are added from now on; none for no
    /// restriction. A cache for which a namespace is named where it is asked for is in that namespace all the same, and
    /// objects of the cluster are seen whatever happens.
    pub fn restrict_to<S: AsRef<str>>(&mut self, namespaces: &[S]) {
        self.namespaces = namespaces.iter().map(|namespace| namespace.as_ref().to_owned()).collect();
    }

    /// The name under which the program writes.
    pub fn field_manager(&self) -> &'static str {
        self.field_manager
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

    /// Where events are recorded, by parts of a program that are no controllers.
    pub fn events(&self) -> &Arc<dyn EventSink> {
        &self.events
    }

    /// All watches, in the order in which they were first asked for.
    pub fn watches(&self) -> &[Arc<Watch>] {
        &self.watches
    }

    /// Shows which caches are not complete, of those that are asked for later too.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// All controllers, in the order in which they were added.
    pub fn workers(&self) -> &[Arc<Worker>] {
        &self.workers
    }

    /// The effects of all controllers.
    pub(crate) fn effects(&self) -> &[Arc<dyn AnyEffects>] {
        &self.effects
    }

    /// The watches whose requests fail.
    pub(crate) fn failures(&self) -> &Arc<Failures> {
        &self.failures
    }

    /// The watches that are not deferred.
    fn begun(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.watches.iter().filter(|watch| !watch.is_deferred())
    }

    /// Whether every cache is complete.
    pub fn synced(&self) -> bool {
        self.begun().all(|watch| watch.sink.synced())
    }

    /// Whether the caches can be trusted: every one is complete ([`Watch::is_complete`]), and none is stale. The reason names the
    /// kinds, and what was wrong with the last request of each that is not complete.
    pub fn readiness(&self) -> Result<(), String> {
        let incomplete = |watch: &Watch| !watch.is_complete();
        self.kinds(incomplete).map_or(Ok(()), |kinds| {
            let reason = |watch: &Watch| watch.obstacle().or_else(|| self.failures.last(watch.kind, &watch.selection));
            let obstacles = self
                .begun()
                .filter(|watch| incomplete(watch))
                .filter_map(|watch| Some(format!("{}: {}", watch.kind.kind, reason(watch)?)));
            let reasons = obstacles.fold(String::new(), |reasons, obstacle| reasons + "\n" + &obstacle);
            Err(format!("caches are not complete: {kinds}{reasons}"))
        })?;
        let stale = |watch: &Watch| self.age(watch) >= STALE;
        self.kinds(stale).map_or(Ok(()), |kinds| {
            Err(format!("no contact with the API server for {} minutes: {kinds}", STALE.as_secs() / 60))
        })
    }

    /// Whether the task of every watch does what it has to, whether the API server answers or not. The reason names
    /// the kinds.
    pub fn liveness(&self) -> Result<(), String> {
        let has_stalled = |watch: &Watch| {
            let progress = watch.reflector.try_lock().map(|reflector| reflector.progress());
            progress.is_some_and(|at| self.clock.moment().since(at.unwrap_or(self.started)) >= STALLED)
        };
        self.kinds(has_stalled).map_or(Ok(()), |kinds| {
            Err(format!("watches have done nothing for {} minutes: {kinds}", STALLED.as_secs() / 60))
        })
    }

    /// The time since the API server last answered or sent something for a watch.
    fn age(&self, watch: &Watch) -> Duration {
        let contact = watch.reflector.lock().contact();
        self.clock.moment().since(contact.unwrap_or(self.started))
    }

    /// The kinds of the watches of which something is true; none when it is true of none.
    fn kinds(&self, is_true: impl Fn(&Watch) -> bool) -> Option<String> {
        let kinds: Vec<&str> = self.begun().filter(|watch| is_true(watch)).map(|watch| watch.kind.kind).collect();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    }

    /// The shared cache of a projection, watched from the start of the program on. The same part of
    /// the same projection is the same cache; caches of the same part of a kind share one watch.
    pub fn store<P: Projection>(&mut self, selection: &Selection) -> Arc<Store<P>> {
        let (field_manager, guard) = (self.field_manager, self.guard.clone());
        let events = Arc::clone(&self.events);
        let watches = self.watch(P::KIND, selection);
        self.caches.add(&watches);
        Watch::shared_store(&watches, |namespaces| {
            let store = Store::<P>::in_namespaces(namespaces, field_manager, guard);
            store.on_quarantine(move |key, quarantined| quarantine::<P>(&*events, key, quarantined));
            store
        })
    }

    /// Feeds a part of a collection to a sink that is no cache: state that is derived from every event. `sink_of` is asked for
    /// the sink of each namespace that the program is restricted to, or once with an empty name: lists are complete for
    /// one namespace at a time.
    pub fn sink(&mut self, kind: ResourceKind, selection: &Selection, sink_of: impl Fn(&str) -> Arc<dyn Sink>) {
        self.watch(kind, selection).iter().for_each(|watch| watch.attach(sink_of(&watch.selection.namespace)));
    }

    /// The watches of a part of a collection: one, or one of each namespace that the program is restricted to.
    fn watch(&mut self, kind: ResourceKind, selection: &Selection) -> Vec<Arc<Watch>> {
        if !kind.namespaced || !selection.namespace.is_empty() || self.namespaces.is_empty() {
            return vec![self.watch_one(kind, selection.clone())];
        }
        let selections =
            self.namespaces.iter().map(|namespace| Selection { namespace: namespace.clone(), ..selection.clone() });
        let selections: Vec<Selection> = selections.collect();
        selections.into_iter().map(|selection| self.watch_one(kind, selection)).collect()
    }

    fn watch_one(&mut self, kind: ResourceKind, selection: Selection) -> Arc<Watch> {
        let known = self.watches.iter().find(|watch| watch.kind == kind && watch.selection == selection);
        if let Some(watch) = known {
            watch.begin();
            return Arc::clone(watch);
        }
        let watch = Arc::new(Watch::new(kind, selection, self.initial, self.guard.clone()));
        self.watches.push(Arc::clone(&watch));
        watch
    }

    /// Adds a controller. `component` names it in events; `wire` asks for caches, connects them, and makes it.
    pub fn add<C: Controller, E>(
        &mut self,
        spec: ControllerSpec,
        component: &'static str,
        wire: impl FnOnce(&mut Wiring<'_>) -> Result<Arc<C>, E>,
    ) -> Result<Arc<Worker>, E> {
        let slot = Arc::new(OnceLock::new());
        let mut wiring = Wiring { core: self, slot: Arc::clone(&slot), wired: Wired::default() };
        let controller = wire(&mut wiring)?;
        let wired = wiring.wired;
        self.effects.extend(wired.effects.iter().cloned());
        let events = Arc::clone(&self.events);
        let environment =
            (Arc::clone(&self.clock), self.metrics.clone(), self.tracer.clone(), events, self.guard.clone());
        let worker = Arc::new(Worker::new(spec, component, controller, wired, environment));
        // The slot was made here and is filled once.
        let _ = slot.set(Arc::downgrade(&worker));
        self.workers.push(Arc::clone(&worker));
        Ok(worker)
    }

    /// Calls this before metrics are served: for metrics that are computed when they are asked for.
    pub fn before_metrics(&mut self, refresh: impl Fn() + Send + Sync + 'static) {
        self.before_metrics.push(Box::new(refresh));
    }

    /// Brings gauges up to date; before metrics are served.
    pub fn refresh_metrics(&self) {
        self.before_metrics.iter().for_each(|refresh| refresh());
        let mut kinds: BTreeMap<&str, (Sizes, u64, Duration)> = BTreeMap::new();
        for watch in self.begun() {
            let (sizes, restarts) = (watch.sink.sizes(), watch.reflector.lock().restarts());
            let (sum, all_restarts, oldest) = kinds.entry(watch.kind.kind).or_default();
            sum.objects += sizes.objects;
            sum.quarantined += sizes.quarantined;
            sum.strings += sizes.strings;
            *all_restarts += restarts;
            *oldest = self.age(watch).max(*oldest);
        }
        let number = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        for (kind, (sizes, restarts, age)) in kinds {
            let kind = &[kind];
            self.metrics.watch_restarts.with_label_values(kind).set(i64::try_from(restarts).unwrap_or(i64::MAX));
            self.metrics.watch_age.with_label_values(kind).set(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
            self.metrics.cache_objects.with_label_values(kind).set(number(sizes.objects));
            self.metrics.cache_quarantined.with_label_values(kind).set(number(sizes.quarantined));
            self.metrics.cache_strings.with_label_values(kind).set(number(sizes.strings));
        }
        for effects in &self.effects {
            let EffectCounts { waiting, running, done, failed } = effects.counts();
            for (state, count) in [("waiting", waiting), ("running", running), ("done", done), ("failed", failed)] {
                self.metrics.effect_keys.with_label_values(&[effects.name(), state]).set(number(count));
            }
        }
        self.workers.iter().for_each(|worker| worker.refresh_metrics());
    }
}

/// Connects a controller with the caches it reads.
pub struct Wiring<'a> {
    core: &'a mut Core,
    slot: Arc<OnceLock<Weak<Worker>>>,
    wired: Wired,
}

impl Wiring<'_> {
    /// A cache of all objects of a kind. The controller makes no decision before it is complete.
    pub fn reads<P: Projection>(&mut self) -> Arc<Store<P>> {
        self.reads_some(&Selection::default())
    }

    /// A cache of some objects of a kind.
    pub fn reads_some<P: Projection>(&mut self, selection: &Selection) -> Arc<Store<P>> {
        let store = self.core.store::<P>(selection);
        self.wired.reads.push(Arc::clone(&store) as Arc<dyn Sink>);
        store
    }

    /// Says which reconcile requests follow from a change in a cache. Should that panic, the changed object itself is
    /// reconciled at once, and the change is repeated later.
    pub fn on<P: Projection>(&self, store: &Store<P>, map: impl Fn(&Change<P>, &mut Requests) + Send + Sync + 'static) {
        let slot = Arc::clone(&self.slot);
        let tracer = self.core.tracer.clone();
        store.listen(move |change| {
            let Some(worker) = slot.get().and_then(Weak::upgrade) else { return };
            let mut requests = Requests::default();
            let mapped = catch_unwind(AssertUnwindSafe(|| map(change, &mut requests)));
            if mapped.is_err() {
                requests.enqueue(&change.key);
            }
            if let (true, Some(new)) = (tracer.is_on(), &change.new) {
                requests.cause = tracer.seen(P::KIND.kind, change.key.as_str(), &new.uid.to_string(), new.revision);
            }
            worker.enqueue(requests);
            if let Err(panic) = mapped {
                resume_unwind(panic);
            }
        });
    }

    /// Work outside of the cluster that the controller's decisions may ask for ([`Outcome::effect`](crate::outcome::Outcome::effect)).
    /// It runs on the leader; its keys are reconciled when it has ended.
    pub fn effects<I, O>(&mut self, name: &'static str, limits: EffectLimits) -> Arc<Effects<I, O>>
    where
        I: PartialEq + Send + 'static,
        O: Send + Sync + 'static,
    {
        let effects = Arc::new(Effects::new(name, limits, SharedClock::clone(&self.core.clock)));
        let slot = Arc::clone(&self.slot);
        effects.on_wake(move |key| {
            let Some(worker) = slot.get().and_then(Weak::upgrade) else { return };
            let mut requests = Requests::default();
            requests.enqueue(key);
            worker.enqueue(requests);
        });
        self.wired.effects.push(Arc::new(Runner::new(Arc::clone(&effects), self.core.metrics.clone())));
        effects
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

fn quarantine<P: Projection>(events: &dyn EventSink, key: &ObjectKey, quarantined: &Quarantined) {
    tracing::warn!(kind = P::KIND.kind, %key, reason = %quarantined.reason, "an object cannot be read");
    let message =
        format!("this {} cannot be read and is ignored until it is fixed: {}", P::KIND.kind, quarantined.reason);
    let about = Regarded { kind: P::KIND, key: key.clone(), uid: quarantined.uid.clone() };
    events.record("koord-runtime", Event::new(about, EventType::Warning, "Decoding", "DecodeError", message));
}
