//! The controller on a small API server, without tasks and in virtual time.

mod world;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use koord_config::descheduler::MigrationControllerArgs;
use koord_descheduler_framework::Pod;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    clock::{Clock as _, ManualClock, SharedClock},
    controller::Worker,
    events::{Event, EventSink},
    intern::Interner,
    metrics::Metrics,
    plan::Execution,
    projection::{DecodeError, Projection},
    random::Random,
    uid::Uid,
    write::WireRequest,
};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json, value::RawValue};

use self::world::Name;
pub(super) use self::world::World;
use super::{Answered, EvictionCounter, JobController, ObjectLimits, PodProjection, Requester};
use crate::jobs::PASSED_ARBITRATION;

/// A pod as the program's cache has it.
#[derive(Debug, PartialEq)]
pub(super) struct PodView(Arc<Pod>);

pub(super) struct PodWire<'a>(koord_runtime::projection::WireMetadata<'a>, k8s_openapi::api::core::v1::Pod);

impl<'a> koord_runtime::projection::Metadata<'a> for PodWire<'a> {
    fn metadata(&self) -> &koord_runtime::projection::WireMetadata<'a> {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for PodWire<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&'de RawValue>::deserialize(deserializer)?.get();
        let object: koord_runtime::projection::MetadataOnly<'de> = serde_json::from_str(text).unwrap();
        Ok(Self(object.metadata, serde_json::from_str(text).unwrap()))
    }
}

impl Projection for PodView {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = PodWire<'a>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(Arc::new(Pod::of(&wire.1, strings).unwrap())))
    }
}

impl PodProjection for PodView {
    fn pod(&self) -> &Arc<Pod> {
        &self.0
    }
}

/// Limits that hold all pods up, or none.
#[derive(Default)]
pub(super) struct Limits {
    pub(super) hold_up: Mutex<Option<Duration>>,
    /// The pods that were evicted, with their nodes, and the jobs.
    pub(super) evicted: Mutex<Vec<String>>,
}

impl ObjectLimits for Limits {
    fn hold_up(&self, _: &Arc<Pod>, _: &Uid, _: Timestamp) -> Option<Duration> {
        *self.hold_up.lock()
    }

    fn evicted(&self, pod: &Arc<Pod>, job: &Uid, _: Timestamp) {
        self.evicted.lock().push(format!("{} {} {job}", pod.key, pod.node.as_deref().unwrap_or_default()));
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<String>>);

impl EventSink for Events {
    fn record(&self, _: &'static str, event: Event) {
        self.0.lock().push(format!("{} {} {}", event.kind.kind, event.key, event.reason));
    }
}

struct ToWorld(Arc<Mutex<World>>);

impl Requester for ToWorld {
    fn call(&self, request: WireRequest) -> Answered {
        let world = Arc::clone(&self.0);
        Box::pin(async move { Ok(world.lock().call(&request)) })
    }
}

/// The controller of one process.
struct Process {
    worker: Arc<Worker>,
    controller: Arc<JobController<PodView>>,
    _core: Core,
}

pub(super) struct Stage {
    pub(super) world: Arc<Mutex<World>>,
    clock: Arc<ManualClock>,
    events: Arc<Events>,
    args: MigrationControllerArgs,
    drops_claims: bool,
    process: Option<Process>,
    pub(super) limits: Arc<Limits>,
    /// Whether jobs pass arbitration by themselves.
    pub(super) arbitrates: bool,
}

impl Stage {
    pub(super) fn new(args: MigrationControllerArgs, drops_claims: bool) -> Self {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = ManualClock::new(start);
        let world = Arc::new(Mutex::new(World::at(start)));
        Self {
            world,
            clock,
            events: Arc::default(),
            args,
            drops_claims,
            process: None,
            limits: Arc::default(),
            arbitrates: true,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.events.0.lock().clone()
    }

    /// Starts a new process, in place of the one before.
    pub(super) fn start(&mut self) {
        let clock: SharedClock = Arc::clone(&self.clock) as SharedClock;
        let events: Arc<dyn EventSink> = Arc::clone(&self.events) as _;
        let mut core = Core::new("koord-descheduler", clock, Random::seeded(1), Metrics::new().unwrap(), events);
        let mut made = None;
        let requester: Arc<dyn Requester> = Arc::new(ToWorld(Arc::clone(&self.world)));
        let worker = core
            .add(JobController::<PodView>::SPEC, "koord-descheduler", |wiring| {
                let limits: Arc<dyn ObjectLimits> = Arc::clone(&self.limits) as _;
                let evicted = EvictionCounter::original(wiring.metrics())?;
                let controller =
                    JobController::wire(wiring, &self.args, self.drops_claims, requester, evicted, limits)?;
                made = Some(Arc::clone(&controller));
                Ok::<_, koord_runtime::prometheus::Error>(controller)
            })
            .unwrap();
        let mut world = self.world.lock();
        world.sinks =
            core.watches().iter().map(|watch| (watch.kind.kind.to_owned(), Arc::clone(&watch.sink) as _)).collect();
        for (name, object) in &world.objects {
            world.show(&name.0, object, false);
        }
        drop(world);
        self.process = Some(Process { worker, controller: made.unwrap(), _core: core });
    }

    /// Ends the process.
    pub(super) fn stop(&mut self) {
        self.process = None;
        self.world.lock().sinks.clear();
    }

    /// The arbitrator lets all jobs pass that wait for it.
    pub(super) fn arbitrate(&self) {
        let mut world = self.world.lock();
        let jobs = world.objects.iter().filter(|((kind, _, _), job)| {
            let phase = job["status"]["phase"].as_str().unwrap_or_default();
            kind == "PodMigrationJob"
                && ["", "Pending"].contains(&phase)
                && job["metadata"]["annotations"][PASSED_ARBITRATION] != "true"
        });
        let jobs: Vec<(Name, Value)> = jobs.map(|(name, job)| (name.clone(), job.clone())).collect();
        for (name, job) in jobs {
            let ttl = job["spec"]["ttl"].as_str().and_then(|ttl| ttl.parse::<koord_resource::Duration>().ok());
            let ttl = ttl.map(|ttl| ttl.to_string());
            let mut patch = json!({"metadata": {"annotations": {PASSED_ARBITRATION: "true"}}});
            if let Some(ttl) = ttl {
                patch["spec"]["ttl"] = ttl.into();
            }
            world.patch(&name, &patch);
        }
    }

    /// Everything that is due now.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.arbitrates && self.process.is_some() {
                self.arbitrate();
            }
            if !self.act(usize::MAX) {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Takes one decision and executes so many of its writes, or runs one effect. Whether there was something to do.
    pub(super) fn act(&mut self, writes_max: usize) -> bool {
        let Some(process) = &self.process else { return false };
        let worker = &process.worker;
        if let Some(attempt) = worker.take() {
            let (outcome, again) = (worker.decide(&attempt), worker.decide(&attempt));
            match (outcome, again) {
                (Ok(outcome), Ok(again)) => {
                    assert!(outcome.is_same(&again));
                    let mut execution = Execution::of(outcome);
                    let mut writes = 0;
                    while let Some(write) = execution.next_write() {
                        if writes == writes_max {
                            return true;
                        }
                        writes += 1;
                        let answer = self.world.lock().write(&write);
                        worker.written(&attempt, &mut execution, &write, write.judge(answer));
                    }
                    worker.finish(attempt, execution);
                }
                (outcome, _) => worker.settle(attempt, outcome.map(|outcome| outcome.requeue)),
            }
            return true;
        }
        let controller = &process.controller;
        if let Some(attempt) = controller.fetches.take() {
            let number = attempt.number();
            controller.fetches.ended(&attempt.key, number, ready(attempt.work));
            return true;
        }
        if let Some(attempt) = controller.evictions.take() {
            let number = attempt.number();
            controller.evictions.ended(&attempt.key, number, ready(attempt.work));
            return true;
        }
        false
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, span: SignedDuration) {
        let end = self.now() + span;
        loop {
            self.settle();
            let left = Duration::try_from(end.duration_since(self.now())).unwrap();
            if left.is_zero() {
                return;
            }
            let due = self.process.as_ref().and_then(|process| process.worker.next_due()).unwrap_or(left);
            self.clock.advance(due.clamp(Duration::from_millis(1), left));
            self.world.lock().now = self.now();
        }
    }

    /// Lets time pass until something is true, for 15 seconds at most.
    pub(super) fn until(&mut self, is_true: impl Fn(&World) -> bool) {
        for _ in 0..150 {
            self.settle();
            if is_true(&self.world.lock()) {
                return;
            }
            self.pass(SignedDuration::from_millis(100));
        }
    }

    pub(super) fn create(&mut self, object: Value) {
        let status = object["status"].clone();
        let answer = self.world.lock().create(object);
        assert_eq!((answer.code, status.is_null() || status.is_object()), (200, true), "{}", answer.body);
    }

    /// Creates an object of this kind and name, whatever it says.
    pub(super) fn put(&mut self, (kind, name): (&str, &str), object: Value) {
        self.world.lock().put((kind.to_owned(), String::new(), name.to_owned()), object);
    }
}

/// The result of a future that waits for nothing.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits"),
    }
}
