//! A controller: a queue of keys, and a function from a key and the caches to an outcome.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use koord_resource::controller::{ControllerSpec, ResourceKind};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    cache::Change,
    clock::{Moment, SharedClock},
    effects::AnyEffects,
    error::{Fault, ReconcileError, Retry},
    events::{Event, EventSink},
    key::ObjectKey,
    metrics::Metrics,
    outcome::Outcome,
    ownership::Controlled,
    panics::{PanicGuard, Panicked, Place, Task},
    plan::{Executed, Execution, Kept},
    projection::Labelled,
    queue::WorkQueue,
    store::Sink,
    trace::{Open, Role, TraceContext, Tracer},
    undeclared::explained,
    write::{Answer, Write},
};

/// What a controller does with one key. It reads caches and returns the desired state; it writes nothing itself.
pub trait Controller: Send + Sync + 'static {
    /// Decides about a key. It changes no memory of the controller ([`Outcome::remember`]): two decisions in a row on the
    /// same view are equal.
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError>;

    /// Is notified of the result of each write that was decided about `key`; for counting.
    fn written(&self, _key: &ObjectKey, _write: &Write, _result: Result<(), &ReconcileError>) {}

    /// The event about a write that was decided about `key` and failed.
    fn failed(&self, _key: &ObjectKey, _write: &Write, _error: &ReconcileError) -> Option<Event> {
        None
    }
}

/// Reconcile requests and events that follow from a change in a cache.
#[derive(Debug, Default)]
pub struct Requests {
    /// Each with how long it is to be left alone.
    keys: Vec<(ObjectKey, Duration)>,
    events: Vec<Event>,
    /// The event that they follow from, in a trace.
    pub(crate) cause: Option<TraceContext>,
}

impl Requests {
    /// Reconciles this key.
    pub fn enqueue(&mut self, key: &ObjectKey) {
        self.enqueue_after(key, Duration::ZERO);
    }

    /// Reconciles this key after a while.
    pub fn enqueue_after(&mut self, key: &ObjectKey, delay: Duration) {
        self.keys.push((key.clone(), delay));
    }

    /// Records an event.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// Enqueues the changed object itself.
pub fn same_key<P>(change: &Change<P>, requests: &mut Requests) {
    requests.enqueue(&change.key);
}

/// Whether the changed object still exists; for `predicate`.
pub fn is_there<P>(change: &Change<P>) -> bool {
    change.new.is_some()
}

/// Enqueues the objects of a kind that control the changed one, before and after the change.
pub fn its_owner<P: Controlled>(kind: ResourceKind) -> impl Fn(&Change<P>, &mut Requests) {
    move |change, requests| {
        before_and_after(change, requests, |value| {
            value.controller().filter(|owner| owner.is_a(&kind)).map(|owner| owner.key(&kind, &change.key))
        });
    }
}

/// Enqueues the objects of a kind that a label of the changed one names, before and after the change.
pub fn named_by_label<P: Labelled>(kind: ResourceKind, label: &'static str) -> impl Fn(&Change<P>, &mut Requests) {
    move |change, requests| {
        let namespace = if kind.namespaced { change.key.namespace() } else { "" };
        before_and_after(change, requests, |value| {
            value.labels().get(label).map(|name| ObjectKey::new(namespace, name))
        });
    }
}

/// Enqueues what the old value leads to, and what the new one does where that is another key.
fn before_and_after<P>(change: &Change<P>, requests: &mut Requests, leads_to: impl Fn(&P) -> Option<ObjectKey>) {
    let values = [&change.old, &change.new].into_iter().flatten();
    let mut keys: Vec<ObjectKey> = values.filter_map(|entry| leads_to(&entry.value)).collect();
    keys.dedup();
    for key in &keys {
        requests.enqueue(key);
    }
}

/// A controller with its queue, as tasks and simulations drive it: take a key, decide, write, settle.
pub struct Worker {
    spec: ControllerSpec,
    controller: Arc<dyn Controller>,
    queue: Mutex<WorkQueue>,
    wakeup: Notify,
    clock: SharedClock,
    metrics: Metrics,
    events: Arc<dyn EventSink>,
    guard: PanicGuard,
    component: &'static str,
    /// The caches that must be complete before the first decision.
    reads: Vec<Arc<dyn Sink>>,
    effects: Vec<Arc<dyn AnyEffects>>,
    tracer: Tracer,
    /// Why keys wait, of those of which it is known; empty unless traces are recorded.
    causes: Mutex<BTreeMap<ObjectKey, TraceContext>>,
    /// Permissions that were missing, which the log says once.
    lacked: Mutex<BTreeSet<String>>,
}

/// What a controller was connected with.
#[derive(Default)]
pub(crate) struct Wired {
    /// The caches that it reads.
    pub(crate) reads: Vec<Arc<dyn Sink>>,
    /// The effects that it asks for.
    pub(crate) effects: Vec<Arc<dyn AnyEffects>>,
}

/// What the driver of a worker has to know about a decision.
#[derive(Debug)]
pub struct Attempt {
    key: ObjectKey,
    started: Moment,
    cause: Option<TraceContext>,
    span: Option<Open>,
}

impl Worker {
    pub(crate) fn new(
        spec: ControllerSpec,
        component: &'static str,
        controller: Arc<dyn Controller>,
        wired: Wired,
        environment: (SharedClock, Metrics, Tracer, Arc<dyn EventSink>, PanicGuard),
    ) -> Self {
        let (clock, metrics, tracer, events, guard) = environment;
        let Wired { reads, effects } = wired;
        metrics.max_concurrent.with_label_values(&[spec.name]).set(i64::try_from(spec.concurrency).unwrap_or(i64::MAX));
        for result in ["success", "error", "requeue", "requeue_after"] {
            metrics.reconcile_total.with_label_values(&[spec.name, result]);
        }
        for counter in [&metrics.reconcile_errors, &metrics.reconcile_terminal_errors, &metrics.reconcile_panics] {
            counter.with_label_values(&[spec.name]);
        }
        metrics.active_workers.with_label_values(&[spec.name]).set(0);
        Self {
            queue: Mutex::new(WorkQueue::new(spec.rate_limit)),
            wakeup: Notify::new(),
            spec,
            controller,
            clock,
            metrics,
            events,
            guard,
            component,
            reads,
            effects,
            tracer,
            causes: Mutex::default(),
            lacked: Mutex::default(),
        }
    }

    /// The controller as data.
    pub fn spec(&self) -> &ControllerSpec {
        &self.spec
    }

    /// Whether every cache that the controller reads is complete.
    pub fn ready(&self) -> bool {
        self.reads.iter().all(|sink| sink.synced())
    }

    /// Keys that wait, now or for later.
    pub fn backlog(&self) -> usize {
        let queue = self.queue.lock();
        queue.depth() + queue.waiting()
    }

    /// Takes the requests that follow from a change.
    pub fn enqueue(&self, requests: Requests) {
        let now = self.clock.moment();
        if !requests.keys.is_empty() {
            if let Some(cause) = requests.cause {
                self.causes.lock().extend(requests.keys.iter().map(|(key, _)| (key.clone(), cause)));
            }
            let mut queue = self.queue.lock();
            for (key, delay) in requests.keys {
                queue.add_after(key, delay, now);
            }
            let ready = queue.depth();
            drop(queue);
            // Not more workers than there are keys; one more learns when the next key is due.
            for _ in 0..ready.min(self.spec.concurrency).max(1) {
                self.wakeup.notify_one();
            }
        }
        for event in requests.events {
            self.events.record(self.component, event);
        }
    }

    /// What made keys fail is over: they are tried again now.
    pub(crate) fn retry_failed(&self) {
        self.queue.lock().retry_failed(self.clock.moment());
        self.wakeup.notify_one();
    }

    /// The next key, if one is ready.
    pub fn take(&self) -> Option<Attempt> {
        let now = self.clock.moment();
        let taken = self.queue.lock().take(now)?;
        self.metrics.queue_wait.with_label_values(&self.labels()).observe(taken.waited.as_secs_f64());
        self.metrics.active_workers.with_label_values(&[self.spec.name]).inc();
        let cause = self.tracer.is_on().then(|| self.causes.lock().remove(&taken.key)).flatten();
        let span = cause.and_then(|cause| self.tracer.open(Some(cause)));
        Some(Attempt { key: taken.key, started: now, cause, span })
    }

    /// Begins to record a write of an attempt, if the attempt belongs to a trace.
    pub(crate) fn begin_write(&self, attempt: &Attempt) -> Option<Open> {
        self.tracer.open(Some(attempt.span?.context()))
    }

    /// The write is over.
    pub(crate) fn end_write(&self, span: Option<Open>, write: &Write, error: Option<&ReconcileError>) {
        let Some(span) = span else { return };
        let verb = write.action.verb();
        let attributes = vec![
            ("k8s.object.kind", write.kind.kind.to_owned()),
            ("k8s.object.key", write.key.as_str().to_owned()),
            ("koord.verb", verb.to_owned()),
        ];
        let name = format!("{verb} {}", write.kind.kind);
        self.tracer.close(span, name, Role::Client, attributes, error.map(ToString::to_string));
    }

    /// Waits until a key is ready.
    pub(crate) async fn taken(&self) -> Attempt {
        loop {
            let woken = self.wakeup.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            if let Some(attempt) = self.take() {
                if self.backlog() > 0 {
                    // Another worker waits for the next key meanwhile.
                    self.wakeup.notify_one();
                }
                return attempt;
            }
            match self.next_due() {
                None => woken.await,
                Some(wait) => {
                    tokio::select! { biased; () = woken => {}, () = self.clock.sleep(wait) => {} }
                }
            }
        }
    }

    /// Whether [`Worker::take`] would give a key now.
    pub fn has_work(&self) -> bool {
        let queue = self.queue.lock();
        queue.depth() > 0 || queue.next_due().is_some_and(|due| due <= self.clock.moment())
    }

    /// The time until the next key becomes ready by itself.
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.queue.lock().next_due()?;
        Some(due.since(self.clock.moment()))
    }

    /// Decides about a key. A panic is a failure of that key.
    pub fn decide(&self, attempt: &Attempt) -> Result<Outcome, ReconcileError> {
        let now = self.clock.now();
        let decided = self.guard.catch(Place::Reconcile, self.task(), || self.controller.reconcile(&attempt.key, now));
        decided.unwrap_or_else(|panicked| {
            self.metrics.reconcile_panics.with_label_values(&[self.spec.name]).inc();
            Err(self.bug(&panicked))
        })
    }

    /// Ends an attempt whose execution panicked. The key is tried again.
    pub fn abandon(&self, attempt: Attempt, panicked: &Panicked) {
        self.settle(attempt, Err(self.bug(panicked)));
    }

    /// The error of a key about which the controller panicked.
    fn bug(&self, panicked: &Panicked) -> ReconcileError {
        ReconcileError::new(Fault::Bug, format!("the controller {} {panicked}", self.spec.name))
    }

    pub(crate) fn guard(&self) -> &PanicGuard {
        &self.guard
    }

    /// The name of its tasks.
    pub fn task(&self) -> Task<'static> {
        Task("controller", self.spec.name)
    }

    /// Ends an attempt: `written` is the requeue time after all writes succeeded, or what went wrong.
    pub fn settle(&self, attempt: Attempt, written: Result<Option<Duration>, ReconcileError>) {
        let Attempt { key, started, cause, span } = attempt;
        if let Some(span) = span {
            let attributes = vec![("koord.controller", self.spec.name.to_owned()), ("k8s.object.key", key.to_string())];
            let error = written.as_ref().err().map(ToString::to_string);
            self.tracer.close(span, format!("reconcile {}", self.spec.name), Role::Internal, attributes, error);
        }
        if let (Some(cause), Err(_)) = (cause, &written) {
            // What is tried again is tried for the same reason, unless there is a newer one.
            self.causes.lock().entry(key.clone()).or_insert(cause);
        }
        let (name, now) = (self.spec.name, self.clock.moment());
        let result = {
            let mut queue = self.queue.lock();
            let result = match &written {
                Ok(requeue) => {
                    queue.forget(&key);
                    match requeue {
                        None => "success",
                        Some(delay) => {
                            queue.add_after(key.clone(), *delay, now);
                            "requeue_after"
                        }
                    }
                }
                Err(error) => {
                    match error.retry {
                        Retry::Backoff => {
                            queue.add_rate_limited(key.clone(), now);
                        }
                        Retry::After(delay) => queue.add_after(key.clone(), delay, now),
                        Retry::Never => queue.forget(&key),
                    }
                    "error"
                }
            };
            queue.done(&key, now);
            result
        };
        self.wakeup.notify_one();
        let seconds = now.since(started).as_secs_f64();
        self.metrics.reconcile_total.with_label_values(&[name, result]).inc();
        self.metrics.reconcile_time.with_label_values(&[name]).observe(seconds);
        self.metrics.queue_work.with_label_values(&self.labels()).observe(seconds);
        self.metrics.active_workers.with_label_values(&[name]).dec();
        if let Err(error) = written {
            self.metrics.reconcile_errors.with_label_values(&[name]).inc();
            self.metrics.reconcile_faults.with_label_values(&[name, error.fault.as_str()]).inc();
            if error.retry == Retry::Never {
                self.metrics.reconcile_terminal_errors.with_label_values(&[name]).inc();
            }
            if error.stale {
                tracing::debug!(controller = name, %key, %error, "the cache was behind; reconciling again");
            } else if !self.is_news(&error) {
                tracing::debug!(controller = name, %key, %error, "reconcile failed for want of the same permission");
            } else {
                tracing::warn!(controller = name, %key, fault = error.fault.as_str(), %error, "reconcile failed");
            }
        }
    }

    /// Records the result of a write of an execution.
    pub fn written(
        &self,
        attempt: &Attempt,
        execution: &mut Execution,
        write: &Write,
        result: Result<Answer, ReconcileError>,
    ) {
        if let Ok(answer) = &result {
            self.reads.iter().for_each(|cache| cache.wrote(write, answer));
        }
        if result.is_ok() {
            self.is_permitted(write);
        }
        let result = result.map(drop).map_err(|error| explained(error, &self.spec, write));
        let (controller, key) = (&self.controller, &attempt.key);
        // A panic is counted; the write is what it is.
        let _ = self.guard.catch(Place::Written, self.task(), || {
            controller.written(key, write, result.as_ref().copied());
        });
        if let Err(error) = &result {
            let event = self.guard.catch(Place::Failed, self.task(), || controller.failed(key, write, error));
            self.record(event.ok().flatten());
        }
        self.keep(execution.written(write, result));
    }

    /// Ends an attempt whose plan was executed.
    pub fn finish(&self, attempt: Attempt, execution: Execution) {
        let Executed { result, kept, effects, events } = execution.end();
        self.keep(kept);
        if let Some(effects) = effects {
            let wanted = effects.begin();
            let others = self.effects.iter().filter(|effects| !wanted.contains(&effects.name()));
            others.for_each(|effects| effects.forget(&attempt.key));
        }
        self.record(events);
        self.settle(attempt, result);
    }

    fn keep(&self, kept: Vec<Kept>) {
        for kept in kept {
            // What is not remembered is decided again.
            let _ = self.guard.catch(Place::Remember, self.task(), || kept.keep());
        }
    }

    /// Records events in the name of the controller.
    pub fn record(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.events.record(self.component, event);
        }
    }

    pub(crate) fn refresh_metrics(&self) {
        let queue = self.queue.lock();
        let (sum, longest) = queue.unfinished(self.clock.moment());
        let (adds, retries) = queue.counts();
        let labels = self.labels();
        self.metrics
            .queue_depth
            .with_label_values(&[self.spec.name, self.spec.name, "0"])
            .set(i64::try_from(queue.depth()).unwrap_or(i64::MAX));
        self.metrics.queue_unfinished.with_label_values(&labels).set(sum.as_secs_f64());
        self.metrics.queue_longest.with_label_values(&labels).set(longest.as_secs_f64());
        let catch_up =
            |counter: &prometheus::IntCounter, total: u64| counter.inc_by(total.saturating_sub(counter.get()));
        catch_up(&self.metrics.queue_adds.with_label_values(&labels), adds);
        catch_up(&self.metrics.queue_retries.with_label_values(&labels), retries);
    }

    /// A write succeeded: should its permission be missing again, that is news.
    fn is_permitted(&self, write: &Write) {
        let mut lacked = self.lacked.lock();
        if let (false, Some(permission)) = (lacked.is_empty(), write.refused(403, "").permission()) {
            lacked.retain(|known| !known.split(", ").any(|known| known == permission));
        }
    }

    /// Whether an error is to be logged: a permission that is missing is, once for all keys, until something has been written.
    fn is_news(&self, error: &ReconcileError) -> bool {
        error.lacks.as_ref().is_none_or(|missing| self.lacked.lock().insert(missing.permission.clone()))
    }

    fn labels(&self) -> [&str; 2] {
        [self.spec.name; 2]
    }
}

impl Attempt {
    /// The key that is worked on.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}
