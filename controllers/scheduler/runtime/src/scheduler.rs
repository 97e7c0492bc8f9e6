//! The scheduler as a state machine: deltas go into the engine, attempts come out of it as writes, and their results go back.

mod audit;
mod background;
mod dumps;
mod elsewhere;
mod ended;
mod extender_calls;
mod ignored;
mod monitor;
mod prepare;
mod repeated;
mod spans;
mod status_updates;
mod watchdog;
mod work;
mod workloads;
mod writes;

use std::{
    collections::{VecDeque, btree_map},
    sync::Arc,
    time::Duration,
};

use koord_runtime::{
    clock::{Moment, SharedClock},
    events::EventSink,
    metrics::Registries,
    trace::Tracer,
};
use koord_scheduler_engine::{Engine, Outcome, PartLatency};
use koord_scheduler_framework::timing::PluginLatency;
use tokio::sync::mpsc;

pub(crate) use self::extender_calls::FinishedCall;
use self::{
    audit::Auditing,
    elsewhere::Elsewhere,
    ignored::Ignored,
    monitor::Monitor,
    prepare::may_take_effect,
    spans::Spans,
    work::subject,
    workloads::Workloads,
    writes::{InFlight, Writes},
};
pub use self::{dumps::Dumps, extender_calls::NumberedCall, work::Work, workloads::AuditorSettings};
use crate::{
    barrier::SyncBarrier,
    controllers::Controllers,
    extender::Webhook,
    feed::{Delta, Feed},
    metrics::Measures,
    observer::{Observed, Observer, Occurrence},
    reader::{EngineReader, ReadRequest, reader},
    report,
    timeouts::{Monitoring, TimeoutReports},
};

/// The component of its events.
const COMPONENT: &str = "koord-scheduler";

/// What decides, without what sends.
pub struct Scheduler {
    engine: Engine,
    pub(crate) feed: Feed,
    events: Arc<dyn EventSink>,
    clock: SharedClock,
    writes: Writes,
    observers: Vec<Box<dyn Observer>>,
    timeout_reports: TimeoutReports,
    auditing: Auditing,
    ignored: Ignored,
    elsewhere: Elsewhere,
    reader: EngineReader,
    pub(crate) read_requests: mpsc::Receiver<ReadRequest>,
    /// Extenders, in the order in which they are called.
    webhooks: Vec<Arc<Webhook>>,
    /// What it waits for when it becomes leader.
    pub(crate) barrier: Option<SyncBarrier>,
    /// How long it waits then until its caches agree with the API server; none where it does not.
    pub(crate) agrees_within: Option<Duration>,
    /// Whose writes beside attempts are made.
    controllers: Controllers,
    /// Set while the engine works: where it is found set, the engine has to begin again.
    is_working: bool,
    phase: Phase,
    /// Whether the engine had all objects when it caught up last. That the caches are complete does not say so: they may have become
    /// it since, with deltas that are not applied yet.
    knows_all: bool,
}

/// Whether this replica schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not been the leader yet.
    Standby,
    Leading,
    /// It was the leader, and another has been since, or may be.
    Deposed,
}

/// What is to be done next.
#[derive(Debug)]
pub enum Next {
    /// This is to be sent, and reported to [`Scheduler::written`].
    Send(Work),
    /// This is to be sent to extenders; [`crate::install`] brings the result back.
    CallExtenders(NumberedCall),
    /// An attempt was made from which no write follows.
    Attempted,
    /// Nothing, until a delta comes or the time of [`Scheduler::wake_at`].
    Rest,
}

impl Scheduler {
    /// How long a binding is left alone whose answer was lost.
    const DOUBT: Duration = Duration::from_secs(1);
    /// After what time a Reservation that others have changed is bound again: the change is known by then.
    const CONFLICT: Duration = Duration::from_millis(100);
    /// Deltas that are applied at once.
    pub(crate) const DELTAS_MAX: usize = 4096;

    /// A scheduler of the objects that the feed brings.
    pub fn new(engine: Engine, feed: Feed, events: Arc<dyn EventSink>, clock: SharedClock) -> Self {
        let (reader, read_requests) = reader();
        Self {
            engine: engine.timed_by(Arc::clone(&clock)),
            feed,
            events,
            clock,
            writes: Writes::default(),
            observers: vec![Box::new(Monitor::default())],
            timeout_reports: TimeoutReports::default(),
            auditing: Auditing::default(),
            ignored: Ignored::default(),
            elsewhere: Elsewhere::default(),
            reader,
            read_requests,
            webhooks: Vec::new(),
            barrier: None,
            agrees_within: None,
            controllers: Controllers::default(),
            is_working: false,
            phase: Phase::Standby,
            knows_all: false,
        }
    }

    /// The same, measured.
    pub fn measured_by(mut self, measures: Measures) -> Self {
        self.timeout_reports.counter = Some(measures.timeouts());
        self.observed_by(measures)
    }

    /// The same, which records the way of every pod as spans.
    pub fn traced(self, tracer: Tracer) -> Self {
        self.observed_by(Spans::by(tracer))
    }

    /// The same, which waits for this when it becomes leader.
    pub fn behind(self, barrier: Option<SyncBarrier>) -> Self {
        Self { barrier, ..self }
    }

    /// The same, which waits until its caches agree with the API server when it becomes leader, for this long at most.
    pub fn agreeing(self, within: Option<Duration>) -> Self {
        Self { agrees_within: within, ..self }
    }

    /// The same, which makes only these plugins' writes beside attempts.
    pub fn controlling(self, controllers: Controllers) -> Self {
        Self { controllers, ..self }
    }

    /// The same, which logs of attempts what these say.
    pub fn dumping(self, dumps: Dumps) -> Self {
        self.observed_by(dumps)
    }

    /// The same, which audits workloads and shows there what it finds.
    pub fn auditing_workloads(self, settings: AuditorSettings, metrics: &Registries) -> prometheus::Result<Self> {
        Ok(self.observed_by(Workloads::new(settings, metrics)?))
    }

    fn observed_by(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// The same, with other times of the monitor.
    pub fn monitored(mut self, monitoring: Monitoring) -> Self {
        self.timeout_reports.settings = monitoring;
        self
    }

    /// Audits some of the sums, and has observers look at what has changed with time.
    pub(crate) fn observe(&mut self) {
        self.audit();
        self.notify(&Occurrence::Tick);
    }

    /// It leads with caches that did not agree with the API server in time.
    pub(crate) fn disagreed(&mut self) {
        self.notify(&Occurrence::CachesDisagree);
    }

    fn notify(&mut self, occurrence: &Occurrence<'_>) {
        let (observers, observed) = self.observers();
        for observer in observers {
            observer.notice(occurrence, &observed);
        }
    }

    /// The observers, and what they may read.
    fn observers(&mut self) -> (&mut [Box<dyn Observer>], Observed<'_>) {
        let observed = Observed {
            is_leading: self.is_leading(),
            knows_all: self.knows_all,
            engine: &self.engine,
            clock: &self.clock,
            timeouts: &self.timeout_reports,
        };
        (&mut self.observers, observed)
    }

    /// A handle that reads the engine's state between two attempts.
    pub fn reader(&self) -> EngineReader {
        self.reader.clone()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Begins to schedule. What it decided while it led before does not count any more: another has led since.
    pub fn lead(&mut self) {
        let before = std::mem::replace(&mut self.phase, Phase::Leading);
        self.elsewhere.set_led_since(Some(self.clock.moment()));
        if before != Phase::Standby {
            self.writes.in_flight.clear();
            self.is_working = true;
        }
        self.notify(&Occurrence::Leads);
    }

    /// Only follows the cluster from now on.
    pub(crate) fn follow(&mut self) {
        if self.is_leading() {
            self.phase = Phase::Deposed;
        }
        self.notify(&Occurrence::Follows);
        self.elsewhere.set_led_since(None);
    }

    fn is_leading(&self) -> bool {
        self.phase == Phase::Leading
    }

    /// What it knows now.
    pub(crate) fn known(&self) -> (&Engine, Moment) {
        (&self.engine, self.clock.moment())
    }

    /// Applies the deltas that are there already. Says whether there may be more.
    pub fn catch_up(&mut self) -> bool {
        // Looked at before the deltas are taken: those that made the caches complete are among them.
        let is_complete = self.feed.is_complete();
        let deltas = self.feed.stream.take(Self::DELTAS_MAX);
        let is_behind = deltas.len() == Self::DELTAS_MAX;
        self.apply(deltas);
        self.knows_all = is_complete && !is_behind;
        is_behind
    }

    pub(crate) fn apply(&mut self, deltas: Vec<Delta>) {
        self.recover();
        self.is_working = true;
        if !deltas.is_empty() {
            self.writes.status_updates.changed();
        }
        self.writes.preparing.is_due |= deltas.iter().any(may_take_effect);
        for delta in deltas {
            let now = self.clock.moment();
            let quota_operation = delta.quota_operation();
            self.notice_rejection(&delta);
            self.notice_binding(&delta);
            self.notify(&Occurrence::Changing(&delta));
            delta.apply(&mut self.engine, now);
            self.notify(&Occurrence::Changed { quota_operation, began: now });
        }
        self.is_working = false;
    }

    /// Reports a pod that its node has rejected.
    fn notice_rejection(&mut self, delta: &Delta) {
        let Delta::PodRejected { uid, resource } = delta else { return };
        let Some(placed) = self.engine.cluster().pod(uid) else { return };
        let node = self.engine.cluster().name(placed.row);
        tracing::warn!(pod = %placed.pod.key, node = node.map(|node| &**node), resource = &**resource, "the node has rejected a pod for want of a resource");
        let pod = Arc::clone(&placed.pod);
        self.notify(&Occurrence::NodeRejected { scheduler: &pod.template.scheduler, resource });
    }

    /// The next write, or attempt. Decisions wait until all objects are known. An object has one write on its way at a time.
    pub fn step(&mut self) -> Next {
        match self.decide() {
            Next::Send(work) if self.comes_too_late(&work) => {
                self.give_up(&work);
                Next::Attempted
            }
            Next::Send(work) => {
                let object = subject(&work.write);
                if work.purpose.binding().is_some() {
                    self.withdraw_in_background(&object);
                }
                match self.writes.in_flight.entry(object) {
                    btree_map::Entry::Vacant(first) => {
                        let (since, is_in_background) = (self.clock.moment(), work.purpose.is_in_background());
                        first.insert(InFlight { since, is_in_background, after: VecDeque::new() });
                        Next::Send(work)
                    }
                    btree_map::Entry::Occupied(mut queue) => {
                        queue.get_mut().after.push_back(work);
                        Next::Attempted
                    }
                }
            }
            next => next,
        }
    }

    fn decide(&mut self) -> Next {
        if !self.knows_all {
            return Next::Rest;
        }
        self.recover();
        let now = self.clock.moment();
        self.check_prepared(now);
        if let Some(work) = self.writes.follow_ups.pop_front().or_else(|| self.next_in_background()) {
            return Next::Send(work);
        }
        if let Some(first) = self.writes.unconfirmed.first_entry().filter(|first| first.key().0 <= now) {
            let unconfirmed = first.remove();
            return self.again(unconfirmed);
        }
        self.hurry(now);
        // What a gang uses while its members are tried is not worth a write: it gives all of it back where one does not fit.
        if self.engine.waiting().next().is_none() {
            self.keep_up(now);
        }
        if let Some(work) = self.writes.follow_ups.pop_front().or_else(|| self.next_in_background()) {
            return Next::Send(work);
        }
        self.is_working = true;
        self.engine.tick(self.clock.now());
        let attempt = self.engine.attempt(now);
        self.is_working = false;
        for pod in self.engine.skipped() {
            self.events.record(COMPONENT, report::skipped(pod));
        }
        let decided = self.clock.moment();
        let (begun, ended) = (self.engine.take_begun_jobs(), self.engine.take_ended_jobs());
        self.notify(&Occurrence::Attempted { attempt: attempt.as_ref(), begun: &begun, ended: &ended });
        let Some(attempt) = attempt else {
            self.keep_up(now);
            return self
                .writes
                .follow_ups
                .pop_front()
                .or_else(|| self.next_in_background())
                .map_or(Next::Rest, Next::Send);
        };
        let parts: Vec<PartLatency> = self.engine.take_latencies().collect();
        for PartLatency { part, is_success, took } in parts {
            let (point, scheduler) = (part.as_str(), &*attempt.pod.template.scheduler);
            self.notify(&Occurrence::PartEnded { point, is_success, scheduler, took });
        }
        let plugins: Vec<PluginLatency> = self.engine.take_plugin_latencies().collect();
        for latency in plugins {
            self.notify(&Occurrence::PluginAnswered(&latency));
        }
        if let Outcome::ExtenderCall { number, args } = attempt.outcome {
            return self.call_extenders(&attempt.pod, number, args);
        }
        self.writes.status_updates.changed();
        if matches!(attempt.outcome, Outcome::Bind { .. } | Outcome::Waiting { .. }) && !attempt.has_waited {
            self.report_ignored_of(&attempt);
        }
        self.notify(&Occurrence::Decided { attempt: &attempt, began: now, decided });
        match &attempt.outcome {
            Outcome::Bind { .. } => self.prepare(Box::new(attempt), 0).map_or(Next::Attempted, Next::Send),
            Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => Next::Attempted,
            Outcome::Refused(refused) => self.refused(&attempt, refused),
        }
    }

    /// Whether all objects are known, without which nothing is decided.
    pub(crate) fn knows_all(&self) -> bool {
        self.knows_all
    }

    /// Whether there is something to do now.
    pub fn has_work(&self) -> bool {
        let now = self.clock.moment();
        let is_due = self.writes.unconfirmed.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        let time = self.clock.now();
        let is_time = self.engine.tick_at().is_some_and(|at| at <= time);
        let has_write = !self.writes.follow_ups.is_empty() || self.has_background_write();
        let has_work = is_due || is_time || has_write || self.engine.has_work(now);
        let has_work =
            has_work || self.writes.preparing.has_work(now) || self.writes.status_updates.has_work(now, time);
        self.feed.stream.backlog() > 0 || self.feed.is_complete() && has_work
    }

    /// When there may be something to do without a delta; none where only a delta helps.
    pub fn wake_at(&self) -> Option<Moment> {
        if !self.knows_all {
            return None;
        }
        let unconfirmed = self.writes.unconfirmed.first_key_value().map(|((at, _), _)| *at);
        let tick = self.engine.tick_at().into_iter().chain(self.writes.status_updates.again()).min().map(|at| {
            let left = Duration::try_from(at.duration_since(self.clock.now())).unwrap_or_default();
            self.clock.moment() + left
        });
        let writes = self.writes.preparing.wake_at().into_iter().chain(self.writes.status_updates.wake_at());
        unconfirmed.into_iter().chain(tick).chain(writes).chain(self.engine.wake_at()).min()
    }

    /// After a panic the state of the engine is unknown, and after another leader the result of its decisions is:
    /// it begins again with what the caches hold.
    fn recover(&mut self) {
        if !std::mem::take(&mut self.is_working) {
            return;
        }
        tracing::warn!("the scheduling engine begins again with what the caches hold");
        self.engine.clear();
        self.writes.restart();
        while !self.feed.stream.take(Self::DELTAS_MAX).is_empty() {}
        self.feed.fill(&mut self.engine, self.clock.moment());
        self.notify(&Occurrence::Restarted);
    }
}
