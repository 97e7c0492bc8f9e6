//! One life of a program: its caches and controllers, and its connections to the server.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use koord_runtime::{
    Core,
    clock::{Moment, SharedClock},
    controller::{Attempt, Worker},
    error::{Fault as Blame, ReconcileError},
    events::{Correlator, Event, EventSink},
    metrics::Metrics,
    panics::{Place, Task},
    plan::Execution,
    random::Random,
    reflector::Initial,
    write::{Answer, Write},
};
use parking_lot::Mutex;

use crate::{
    companion::{Companion, Decision},
    connection::Connection,
    scenario::Scenario,
    world::World,
};

/// As whom a simulated program writes.
pub const FIELD_MANAGER: &str = "simulated";
/// How much later than the others one watch may begin.
const LATE_START: Duration = Duration::from_mins(30);

/// A running program.
pub struct Program {
    core: Core,
    connections: Vec<Connection>,
    running: Vec<Running>,
    companion: Option<Box<dyn Companion>>,
    /// What the companion has decided and nobody has sent.
    decided: Vec<Decision>,
    events: Arc<Recorded>,
    /// What follows from the last event and is not sent yet.
    event_writes: VecDeque<Write>,
    correlator: Correlator,
}

/// A decision whose writes are being carried out.
struct Running {
    worker: Arc<Worker>,
    attempt: Attempt,
    execution: Execution,
}

#[derive(Default)]
struct Recorded(Mutex<VecDeque<(&'static str, Event)>>);

impl EventSink for Recorded {
    fn record(&self, component: &'static str, event: Event) {
        self.0.lock().push_back((component, event));
    }
}

/// A step that the program can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Goes on with the watch of this number.
    Follow(usize),
    /// Lets the controller of this number take a key and decide.
    Decide(usize),
    /// Carries out the next write of this decision.
    Write(usize),
    /// Sends a write of an event.
    Event,
    /// Lets the companion take in what has changed, and decide.
    Accompany,
    /// Sends what the companion has decided, this one.
    Send(usize),
}

impl Step {
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self, Step::Follow(_))
    }

    /// Whether it may write something else than events.
    pub(crate) fn writes(&self) -> bool {
        matches!(self, Step::Write(_) | Step::Send(_))
    }
}

impl Program {
    /// Starts a program with empty memory.
    pub(crate) fn start(
        scenario: &dyn Scenario,
        clock: SharedClock,
        random: Random,
        world: &World,
    ) -> Result<Self, String> {
        let events = Arc::new(Recorded::default());
        let metrics = Metrics::new().map_err(|error| error.to_string())?;
        let initial = if random.below(2) == 0 { Initial::Stream } else { Initial::Pages };
        let mut core = Core::new(FIELD_MANAGER, clock, random, metrics, Arc::clone(&events) as Arc<dyn EventSink>);
        core.set_initial(initial);
        core.inject_panics(world.panics.injector());
        scenario.wire(&mut core)?;
        let sink = Arc::clone(&events) as Arc<dyn EventSink>;
        let companion = scenario.companion(&mut core, &sink);
        let late = world.random.below(2 * core.watches().len() as u64);
        let connect = |(index, watch): (usize, &Arc<_>)| {
            if world.faulty() && index as u64 == late {
                Connection::starting_at(Arc::clone(watch), core.clock().moment() + world.span(LATE_START))
            } else {
                Connection::new(Arc::clone(watch))
            }
        };
        let connections = core.watches().iter().enumerate().map(connect).collect();
        Ok(Self {
            core,
            connections,
            running: Vec::new(),
            companion,
            decided: Vec::new(),
            events,
            event_writes: VecDeque::new(),
            correlator: Correlator::new("simulated"),
        })
    }

    /// Its caches and controllers.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        let now = self.core.clock().moment();
        self.connections.iter_mut().for_each(|connection| connection.stop_faults(now));
    }

    /// The plural of one of the kinds that it watches.
    pub(crate) fn some_plural(&self, random: &Random) -> Option<&'static str> {
        let index = random.below(self.connections.len() as u64);
        self.connections.get(usize::try_from(index).ok()?).map(Connection::plural)
    }

    /// The steps that are possible now.
    pub(crate) fn steps(&mut self, steps: &mut Vec<Step>, world: &mut World) {
        let now = self.core.clock().moment();
        steps.clear();
        for (index, connection) in self.connections.iter_mut().enumerate() {
            if connection.can_step(now, world) {
                steps.push(Step::Follow(index));
            }
        }
        for (index, worker) in self.core.workers().iter().enumerate() {
            let busy = self.running.iter().filter(|running| Arc::ptr_eq(&running.worker, worker)).count();
            if worker.has_work() && worker.ready() && busy < worker.spec().concurrency {
                steps.push(Step::Decide(index));
            }
        }
        steps.extend((0..self.running.len()).map(Step::Write));
        steps.extend((0..self.decided.len()).map(Step::Send));
        if self.companion.as_ref().is_some_and(|companion| companion.has_work()) {
            steps.push(Step::Accompany);
        }
        if !self.event_writes.is_empty() || !self.events.0.lock().is_empty() {
            steps.push(Step::Event);
        }
    }

    /// The time until something becomes possible by itself.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let now = self.core.clock().moment();
        let connections = self.connections.iter().map(|connection| connection.next_due(now));
        let workers = self.core.workers().iter().filter(|worker| worker.ready()).filter_map(|worker| worker.next_due());
        let companion = self.companion.as_ref().and_then(|companion| companion.wake_at()).map(|at| at.since(now));
        connections.chain(workers).chain(companion).min()
    }

    pub(crate) fn step(&mut self, step: Step, world: &mut World) {
        match step {
            Step::Follow(index) => self.follow(index, world),
            Step::Decide(index) => self.decide(index, world),
            Step::Write(index) => self.write(index, world),
            Step::Event => self.write_event(world),
            Step::Accompany => self.accompany(world),
            Step::Send(index) => self.send_decided(index, world),
        }
    }

    fn follow(&mut self, index: usize, world: &mut World) {
        let others = self.connections.iter().enumerate().filter(|(other, _)| *other != index);
        let others_heard: Moment = others.map(|(_, other)| other.heard()).max().unwrap_or_default();
        let Some(connection) = self.connections.get_mut(index) else { return };
        let stepped = self.core.guard().catch(Place::Watch, connection.task(), || {
            connection.step(&self.core, others_heard, world);
        });
        if stepped.is_err() {
            world.note(format_args!("{} panics", connection.task()));
            world.shows(|witness| witness.is_lost(connection.plural()));
            connection.start_again(self.core.clock().moment());
        }
    }

    fn decide(&mut self, index: usize, world: &mut World) {
        let worker = Arc::clone(&self.core.workers()[index]);
        let Some(attempt) = worker.take() else { return };
        // Without faults the writes are what is interesting, not that somebody looked again.
        if world.faulty() {
            world.note(format_args!("{}: decides about {}", worker.spec().name, attempt.key()));
        }
        let (decided, again) = (worker.decide(&attempt), world.without_panics(|| worker.decide(&attempt)));
        if let (Ok(decided), Ok(again)) = (&decided, &again)
            && !decided.is_same(again)
        {
            let (controller, key) = (worker.spec().name, attempt.key());
            world.broken = Some(format!("{controller}: two decisions about {key} differ: {decided:?}, {again:?}"));
        }
        match decided {
            Ok(outcome) => self.running.push(Running { worker, attempt, execution: Execution::of(outcome) }),
            Err(error) => {
                world.note(format_args!("{}: {error}", worker.spec().name));
                worker.settle(attempt, Err(error));
            }
        }
    }

    fn write(&mut self, index: usize, world: &mut World) {
        let mut running = self.running.remove(index);
        let Some(write) = running.execution.next_write() else {
            return running.worker.finish(running.attempt, running.execution);
        };
        let Running { worker, attempt, execution } = &mut running;
        let executed = self.core.guard().catch(Place::Execution, worker.task(), || {
            let result = send(&write, world, &["uid", "resourceVersion"]);
            if let Err(error) = &result {
                world.note(format_args!("  {error}"));
            }
            worker.written(attempt, execution, &write, result);
        });
        match executed {
            Ok(()) => self.running.push(running),
            Err(panicked) => running.worker.abandon(running.attempt, &panicked),
        }
    }

    /// Whether all sums of the companion are what the objects amount to.
    pub(crate) fn sums_agree(&mut self) -> Result<(), String> {
        self.companion.as_mut().map_or(Ok(()), |companion| companion.audit())
    }

    fn accompany(&mut self, world: &mut World) {
        let Some(companion) = &mut self.companion else { return };
        let decided = companion.step();
        let (moment, now) = (self.core.clock().moment(), self.core.clock().now());
        let mut judged = world.witness.as_mut().map_or(Ok(()), |witness| witness.goes_on(moment, now));
        if let Some(decision) = decided {
            world.note(format_args!("{}: {}", companion.name(), decision.write));
            if let Some(witness) = &mut world.witness {
                judged = judged.and(witness.decides(&decision.write, moment));
            }
            self.decided.push(decision);
        }
        if let Err(wrong) = judged {
            world.broken = Some(wrong);
        }
    }

    fn send_decided(&mut self, index: usize, world: &mut World) {
        let Decision { number, write } = self.decided.remove(index);
        // Of what a companion writes it is the only author, and decides on other objects.
        let result = send(&write, world, &["uid"]).map(drop);
        if let Some(companion) = &mut self.companion {
            companion.written(number, result);
        }
    }

    /// One write of an event: a death may come between any two.
    fn write_event(&mut self, world: &mut World) {
        // An event is lost with a panic.
        let _ = self.core.guard().catch(Place::Events, Task("events", ""), || {
            if self.event_writes.is_empty() {
                let event = self.events.0.lock().pop_front();
                let now = self.core.clock().now();
                self.event_writes.extend(self.correlator.sweep(now));
                if let Some((component, event)) = event {
                    self.event_writes.extend(self.correlator.record(component, event, now, self.core.random()));
                }
            }
            if let Some(write) = self.event_writes.pop_front()
                && send(&write, world, &[]).is_err()
            {
                self.correlator.forget(&write.key);
            }
        });
    }
}

/// Sends a write and judges the answer.
fn send(write: &Write, world: &mut World, basis: &[&str]) -> Result<Answer, ReconcileError> {
    match world.send(write, FIELD_MANAGER, basis) {
        Ok(answer) => write.judge(answer),
        Err(reason) => Err(ReconcileError::new(Blame::Api, format!("{write}: {reason}")).aborting_plan()),
    }
}
