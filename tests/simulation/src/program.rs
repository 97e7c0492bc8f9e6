//! One life of a program: its caches and controllers, and its connections to the server.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use envtest::server::Watch;
use koord_runtime::{
    Core,
    clock::{Moment, SharedClock},
    controller::{Attempt, Worker},
    error::ReconcileError,
    events::{Correlator, Event, EventSink},
    metrics::Metrics,
    outcome::Outcome,
    random::Random,
    reflector::{Ask, Failure, Initial},
    write::{Action, Answer, Write},
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    fault::Fault,
    run::{Scenario, World},
    stage::failure,
};

const FIELD_MANAGER: &str = "simulated";
/// Lines that a watch hands over in one step, at most.
const LINES_PER_STEP: u64 = 4;
/// Lines that may come again.
const REDELIVERED: usize = 4;

/// A running program.
pub struct Program {
    core: Core,
    lines: Vec<Line>,
    running: Vec<Running>,
    told: Arc<Told>,
    correlator: Correlator,
}

/// The connection of one watch.
enum Line {
    /// Nothing is under way; the protocol may be asked again from this moment on.
    Idle(Moment),
    Open(Box<Open>),
}

struct Open {
    watch: Box<Watch>,
    /// Lines that are on their way.
    coming: VecDeque<String>,
    /// Lines that came before.
    came: VecDeque<String>,
    silent_until: Moment,
    ends: Moment,
}

/// A decision whose writes are being carried out.
struct Running {
    worker: Arc<Worker>,
    attempt: Attempt,
    outcome: Outcome,
    next: usize,
}

#[derive(Default)]
struct Told(Mutex<VecDeque<(&'static str, Event)>>);

impl EventSink for Told {
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
    /// Tells an event.
    Tell,
}

impl Program {
    /// Starts a program with empty memory.
    pub(crate) fn start(scenario: &dyn Scenario, clock: SharedClock, random: Random) -> Result<Self, String> {
        let told = Arc::new(Told::default());
        let metrics = Metrics::new().map_err(|error| error.to_string())?;
        let initial = if random.below(2) == 0 { Initial::Stream } else { Initial::Pages };
        let mut core = Core::new(clock, random, metrics, Arc::clone(&told) as Arc<dyn EventSink>);
        core.set_initial(initial);
        scenario.wire(&mut core)?;
        let lines = core.watches().iter().map(|_| Line::Idle(Moment::default())).collect();
        Ok(Self { core, lines, running: Vec::new(), told, correlator: Correlator::new("simulated") })
    }

    /// Its caches and controllers.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The paths of the collections that it watches.
    pub(crate) fn watched_paths(&self) -> Vec<String> {
        self.core.watches().iter().map(|watch| watch.path()).collect()
    }

    /// The steps that are possible now.
    pub(crate) fn steps(&mut self, world: &mut World) -> Vec<Step> {
        let now = self.core.clock().moment();
        let mut steps = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate() {
            let can = match line {
                Line::Idle(from) => *from <= now,
                Line::Open(open) if open.silent_until > now => false,
                Line::Open(open) => {
                    if open.coming.is_empty() {
                        open.coming.extend(world.stage.lines(&mut open.watch, 64));
                    }
                    !open.coming.is_empty() || open.watch.has_ended() || open.ends <= now
                }
            };
            if can {
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
        if !self.told.0.lock().is_empty() {
            steps.push(Step::Tell);
        }
        steps
    }

    /// The time until something becomes possible by itself.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let now = self.core.clock().moment();
        let lines = self.lines.iter().map(|line| match line {
            Line::Idle(from) => from.since(now),
            Line::Open(open) => open.ends.since(now).min(match open.silent_until.since(now) {
                Duration::ZERO => Duration::MAX,
                silence => silence,
            }),
        });
        let workers = self.core.workers().iter().filter(|worker| worker.ready()).filter_map(|worker| worker.next_due());
        lines.chain(workers).min()
    }

    pub(crate) fn step(&mut self, step: Step, world: &mut World) {
        match step {
            Step::Follow(index) => self.follow(index, world),
            Step::Decide(index) => self.decide(index, world),
            Step::Write(index) => self.write(index, world),
            Step::Tell => self.tell(world),
        }
    }

    fn follow(&mut self, index: usize, world: &mut World) {
        let Some(line) = self.lines.get_mut(index) else { return };
        match std::mem::replace(line, Line::Idle(Moment::default())) {
            Line::Idle(_) => self.connect(index, world),
            Line::Open(open) => self.receive(index, open, world),
        }
    }

    fn connect(&mut self, index: usize, world: &mut World) {
        let (clock, random) = (Arc::clone(self.core.clock()), self.core.random().clone());
        let (now, watch) = (clock.moment(), Arc::clone(&self.core.watches()[index]));
        let mut reflector = watch.reflector.lock();
        let path = watch.path();
        let ask = reflector.ask(now, &random);
        if world.faulty() {
            world.note(format_args!("{path}: {ask:?}"));
        }
        match ask {
            Ask::Wait(wait) => self.lines[index] = Line::Idle(now + wait),
            Ask::List(query) => {
                let answer = if world.faulty() && world.chance(4) {
                    world.struck(Fault::StaleList);
                    world.stage.recall(&path, &world.random).map(|body| Answer { code: 200, retry_after: None, body })
                } else {
                    None
                };
                let answer = match answer {
                    Some(stale) => stale,
                    None => {
                        world.gated(watch.kind.plural).unwrap_or_else(|| world.stage.get(&format!("{path}?{query}")))
                    }
                };
                if answer.is_success() {
                    reflector.page(&answer.body, now, &random, &*watch.sink);
                } else {
                    reflector.failed(&refused(&answer), now, &random);
                }
            }
            Ask::Watch { query, .. } => {
                let opened = match world.gated(watch.kind.plural) {
                    Some(refusal) => Err(refusal),
                    None => world.stage.open(&format!("{path}?{query}")),
                };
                match opened {
                    Err(answer) => reflector.failed(&refused(&answer), now, &random),
                    Ok(opened) => {
                        let seconds = opened.timeout_seconds().unwrap_or(300);
                        self.lines[index] = Line::Open(Box::new(Open {
                            watch: opened,
                            coming: VecDeque::new(),
                            came: VecDeque::new(),
                            silent_until: now,
                            ends: now + Duration::from_secs(seconds),
                        }));
                    }
                }
            }
        }
    }

    fn receive(&mut self, index: usize, mut open: Box<Open>, world: &mut World) {
        let (now, random) = (self.core.clock().moment(), self.core.random().clone());
        let watch = Arc::clone(&self.core.watches()[index]);
        let path = watch.path();
        let mut reflector = watch.reflector.lock();
        if open.coming.is_empty() {
            // In peace this is all that happens, and would push the interesting lines out of the story.
            if world.faulty() {
                world.note(format_args!("{path}: the server ends the watch"));
            }
            return reflector.closed(now, &random);
        }
        let fault = if world.faulty() { Fault::of_watch(&world.random) } else { None };
        if let Some(fault) = fault {
            world.struck(fault);
            world.note(format_args!("{path}: {fault:?}"));
        }
        let mut lines: Vec<String> = Vec::new();
        match fault {
            Some(Fault::Closed) => return reflector.closed(now, &random),
            Some(Fault::Slow) => {
                open.silent_until = now + Duration::from_millis(world.random.below(120_000));
                self.lines[index] = Line::Open(open);
                return;
            }
            Some(Fault::Expired) => {
                let status = failure(410, "Expired", "too old resource version");
                lines.push(format!(r#"{{"type":"ERROR","object":{}}}"#, status.body));
            }
            Some(Fault::Cut) => {
                let line = open.coming.pop_front().unwrap_or_default();
                let cut = usize::try_from(world.random.below(line.len() as u64)).unwrap_or_default();
                lines.push(line.chars().take(cut).collect());
            }
            Some(Fault::Redelivery) => {
                lines.extend(open.coming.pop_front());
                lines.extend(open.came.front().cloned());
            }
            Some(Fault::Bookmark) => {
                // The server may only tell a revision that all delivered events have reached.
                if open.coming.is_empty() {
                    lines.extend(world.stage.bookmark(&mut open.watch));
                }
            }
            _ => {
                for _ in 0..=world.random.below(LINES_PER_STEP) {
                    lines.extend(open.coming.pop_front());
                }
            }
        }
        for line in lines {
            if !line.contains("\"BOOKMARK\"") {
                if open.came.len() == REDELIVERED {
                    open.came.pop_front();
                }
                open.came.push_back(line.clone());
            }
            if let Err(hang_up) = reflector.line(&line, now, &random, &*watch.sink) {
                world.note(format_args!("{path}: hung up: {hang_up}"));
                return;
            }
        }
        self.lines[index] = Line::Open(open);
    }

    fn decide(&mut self, index: usize, world: &mut World) {
        let worker = Arc::clone(&self.core.workers()[index]);
        let Some(attempt) = worker.take() else { return };
        world.note(format_args!("{}: decides about {}", worker.spec().name, attempt.key()));
        match worker.decide(&attempt) {
            Ok(outcome) => self.running.push(Running { worker, attempt, outcome, next: 0 }),
            Err(error) => {
                world.note(format_args!("{}: {error}", worker.spec().name));
                worker.settle(attempt, Err(error));
            }
        }
    }

    fn write(&mut self, index: usize, world: &mut World) {
        let mut running = self.running.remove(index);
        let Some(write) = running.outcome.plan.get(running.next).cloned() else {
            running.worker.tell(std::mem::take(&mut running.outcome.events));
            return running.worker.settle(running.attempt, Ok(running.outcome.requeue));
        };
        match running.worker.written(&write, send(&write, world)) {
            Ok(()) => {
                running.next += 1;
                self.running.push(running);
            }
            Err(error) => {
                world.note(format_args!("  {error}"));
                running.worker.settle(running.attempt, Err(error));
            }
        }
    }

    fn tell(&mut self, world: &mut World) {
        let told = self.told.0.lock().pop_front();
        if let Some((component, event)) = told {
            let write = self.correlator.write(component, event, self.core.clock().now(), self.core.random());
            if send(&write, world).is_err() {
                self.correlator.forget(&write.key);
            }
        }
    }
}

/// Sends a write through whatever goes wrong on the way, and judges the answer.
fn send(write: &Write, world: &mut World) -> Result<(), ReconcileError> {
    world.check_write(write);
    let request = write.request(FIELD_MANAGER);
    let fault = if world.faulty() { Fault::of_write(&world.random) } else { None };
    if let Some(fault) = fault {
        world.struck(fault);
    }
    let answer = match (fault, world.gated(write.kind.plural)) {
        (_, Some(refusal)) => refusal,
        (Some(Fault::Conflict), _) => failure(409, "Conflict", "the object has been modified"),
        (Some(Fault::TooMany), _) => {
            Answer { retry_after: Some(Duration::from_secs(1)), ..failure(429, "TooManyRequests", "too many requests") }
        }
        (Some(Fault::ErrorBefore), _) => failure(500, "InternalError", "before the commit"),
        (Some(Fault::ErrorAfter), _) => {
            world.stage.send(&request);
            failure(504, "Timeout", "after the commit")
        }
        (Some(Fault::Refused), _) => failure(403, "Forbidden", "admission webhook denied the request"),
        _ => world.stage.send(&request),
    };
    world.wrote(write, fault, &answer);
    write.judge(&answer)
}

/// Whether a change names what it was decided on.
pub(crate) fn names_its_basis(write: &Write) -> bool {
    let names = |patch: &Value, field: &str| patch.pointer(&format!("/metadata/{field}")).is_some();
    match &write.action {
        Action::Patch { patch, .. } => {
            write.kind.kind == "Event" || (names(patch, "uid") && names(patch, "resourceVersion"))
        }
        Action::Create(_) | Action::Delete { .. } => true,
    }
}

fn refused(answer: &Answer) -> Failure {
    Failure { code: Some(answer.code), retry_after: answer.retry_after, message: answer.status().1 }
}
