//! One watch of the program, and the line between it and the server, which is not always a good one.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use envtest::server::Watch;
use koord_runtime::{
    Core,
    clock::Moment,
    panics::Task,
    random::Random,
    reflector::{Ask, Failure, Reflector},
    write::Answer,
};
use serde_json::Value;

use crate::{fault::Fault, stage::failure, world::World};

/// Lines that a watch hands over in one step, at most.
const LINES_PER_STEP: u64 = 4;
/// Lines that may come again.
const REDELIVERED: usize = 4;
/// Lines that are on their way, at most.
const IN_FLIGHT: usize = 256;
/// How many revisions a list may be behind, at most.
const LAG: u64 = 30;
/// How long a slow line is silent, at most.
const SILENCE: Duration = Duration::from_mins(2);
/// How long a task that panicked waits before it starts again.
const PAUSE: Duration = Duration::from_secs(1);
/// How far one watch falls behind the others, at least, and up to as much again.
const BEHIND: Duration = Duration::from_hours(1);

/// A watch of the program and its connection to the server.
pub(crate) struct Connection {
    watch: Arc<koord_runtime::Watch>,
    line: Line,
    /// Since when and until when nothing is delivered, and why.
    held: Option<Held>,
    /// When it last delivered something.
    heard: Moment,
}

struct Held {
    since: Moment,
    until: Moment,
    by: Fault,
}

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
    ends: Moment,
}

impl Connection {
    /// A connection that is made as soon as it is stepped.
    pub(crate) fn new(watch: Arc<koord_runtime::Watch>) -> Self {
        Self { watch, line: Line::Idle(Moment::default()), held: None, heard: Moment::default() }
    }

    /// A connection that cannot be made before `start`.
    pub(crate) fn starting_at(watch: Arc<koord_runtime::Watch>, start: Moment) -> Self {
        Self { line: Line::Idle(start), ..Self::new(watch) }
    }

    /// The name of its task.
    pub(crate) fn task(&self) -> Task<'static> {
        self.watch.task()
    }

    /// Its task has panicked: the connection is lost, and a new list brings cache and server together.
    pub(crate) fn start_again(&mut self, now: Moment) {
        self.watch.reflector.lock().reset();
        (self.line, self.held) = (Line::Idle(now + PAUSE), None);
    }

    /// When it last delivered something.
    pub(crate) fn heard(&self) -> Moment {
        self.heard
    }

    /// The plural of what it watches.
    pub(crate) fn plural(&self) -> &'static str {
        self.watch.kind.plural
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&mut self, now: Moment) {
        self.held = None;
        if let Line::Idle(from) = &mut self.line {
            *from = (*from).min(now + Duration::from_mins(1));
        }
    }

    /// Whether there is something to do at this moment.
    pub(crate) fn can_step(&mut self, now: Moment, world: &mut World) -> bool {
        let is_held = self.is_held(now);
        match &mut self.line {
            Line::Idle(from) => *from <= now,
            Line::Open(open) => {
                if open.coming.len() < IN_FLIGHT {
                    open.coming.extend(world.stage.lines(&mut open.watch, IN_FLIGHT));
                }
                open.ends <= now || (!is_held && (!open.coming.is_empty() || open.watch.has_ended()))
            }
        }
    }

    /// The time until it has something to do by itself.
    pub(crate) fn next_due(&self, now: Moment) -> Duration {
        match &self.line {
            Line::Idle(from) => from.since(now),
            Line::Open(open) => {
                let silence = self.held.as_ref().map(|held| held.until.since(now)).filter(|left| !left.is_zero());
                open.ends.since(now).min(silence.unwrap_or(Duration::MAX))
            }
        }
    }

    /// Does one thing. `others_heard` is when another connection last delivered something.
    pub(crate) fn step(&mut self, core: &Core, others_heard: Moment, world: &mut World) {
        let (now, random) = (core.clock().moment(), core.random().clone());
        let watch = Arc::clone(&self.watch);
        let mut reflector = watch.reflector.lock();
        match std::mem::replace(&mut self.line, Line::Idle(Moment::default())) {
            Line::Idle(_) => self.connect(&mut reflector, now, &random, world),
            Line::Open(open) => self.receive(open, &mut reflector, now, &random, others_heard, world),
        }
        world.seen = world.seen.max(reflector.revision().0);
    }

    fn is_held(&self, now: Moment) -> bool {
        self.held.as_ref().is_some_and(|held| now < held.until)
    }

    fn connect(&mut self, reflector: &mut Reflector, now: Moment, random: &Random, world: &mut World) {
        let (path, plural) = (self.watch.path(), self.plural());
        let ask = reflector.ask(now, random, &*self.watch.sink);
        if world.faulty() {
            world.note(format_args!("{path}: {ask:?}"));
        }
        match ask {
            Ask::Wait(wait) => self.line = Line::Idle(now + wait),
            Ask::List(query) => {
                let refusal = world.gated("list", self.watch.kind.plural);
                let answer = refusal.unwrap_or_else(|| list(&path, &query, reflector.revision().0, world));
                if answer.is_success() {
                    let panics = world.panics.count();
                    let _ = reflector.page(&answer.body, now, random, &*self.watch.sink);
                    self.heard = now;
                    let (is_first, revision) = (!query.contains("continue="), reflector.revision().0);
                    world.shows(|witness| witness.page(plural, &answer.body, is_first, revision));
                    lost_by_panics(plural, panics, world);
                } else {
                    reflector.failed(&refused(&answer), now, random);
                }
            }
            Ask::Watch { query, .. } => {
                let opened = match world.gated("watch", self.watch.kind.plural) {
                    Some(refusal) => Err(refusal),
                    None => world.stage.open(&format!("{path}?{query}")),
                };
                match opened {
                    Err(answer) => reflector.failed(&refused(&answer), now, random),
                    Ok(mut watch) => {
                        if query.contains("sendInitialEvents") {
                            world.shows(|witness| witness.list_begins(plural));
                        }
                        let seconds = watch.timeout_seconds().unwrap_or(300);
                        let mut coming: VecDeque<String> = world.stage.lines(&mut watch, IN_FLIGHT).into();
                        if world.faulty() && query.contains("sendInitialEvents") && world.chance(3) {
                            reorder(coming.make_contiguous(), world);
                        }
                        let ends = now + Duration::from_secs(seconds);
                        self.line = Line::Open(Box::new(Open { watch, coming, came: VecDeque::new(), ends }));
                    }
                }
            }
        }
    }

    fn receive(
        &mut self,
        mut open: Box<Open>,
        reflector: &mut Reflector,
        now: Moment,
        random: &Random,
        others_heard: Moment,
        world: &mut World,
    ) {
        let path = self.watch.path();
        if open.coming.is_empty() || self.is_held(now) {
            // Without faults this is all that happens, and would push the interesting lines out of the story.
            if world.faulty() {
                world.note(format_args!("{path}: the server ends the watch"));
            }
            let _ = reflector.closed(now, random);
            return;
        }
        let (fault, is_new) = match self.held.take() {
            Some(held) => {
                let was_behind = held.by == Fault::Behind && others_heard > held.since + BEHIND;
                if held.by == Fault::Slow || was_behind {
                    world.struck(held.by);
                }
                (Some(held.by).filter(|by| *by == Fault::Missed), false)
            }
            None if world.faulty() => (Fault::of_watch(&world.random), true),
            None => (None, false),
        };
        if let Some(fault) = fault {
            world.note(format_args!("{path}: {fault:?}"));
        }
        let mut lines: Vec<String> = Vec::new();
        let mut ends = false;
        match fault {
            Some(by @ (Fault::Slow | Fault::Behind | Fault::Missed)) if is_new => {
                let span = match by {
                    Fault::Behind => BEHIND + world.span(BEHIND),
                    _ => world.span(SILENCE),
                };
                self.held = Some(Held { since: now, until: now + span, by });
                self.line = Line::Open(open);
                return;
            }
            Some(Fault::Closed) => {
                world.struck(Fault::Closed);
                let _ = reflector.closed(now, random);
                return;
            }
            Some(by @ (Fault::Expired | Fault::Missed)) => {
                world.struck(if by == Fault::Missed && names_one_twice(&open.coming) { by } else { Fault::Expired });
                let status = failure(410, "Expired", "too old resource version");
                lines.push(format!(r#"{{"type":"ERROR","object":{}}}"#, status.body));
            }
            Some(Fault::Cut) => {
                world.struck(Fault::Cut);
                let line = open.coming.pop_front().unwrap_or_default();
                let cut = usize::try_from(world.random.below(line.len() as u64)).unwrap_or_default();
                lines.push(line.chars().take(cut).collect());
            }
            Some(Fault::Duplicate) => {
                world.struck(Fault::Duplicate);
                let line = open.coming.pop_front().unwrap_or_default();
                lines.extend([line.clone(), line]);
            }
            Some(Fault::Redelivery) => {
                lines.extend(open.coming.pop_front());
                if let Some(old) = open.came.front() {
                    world.struck(Fault::Redelivery);
                    lines.push(old.clone());
                }
            }
            Some(Fault::Bookmark) => {
                lines.extend(open.coming.drain(..));
                if let Some(bookmark) = world.stage.bookmark(&mut open.watch) {
                    world.struck(Fault::Bookmark);
                    lines.push(bookmark);
                }
                ends = true;
            }
            _ => {
                for _ in 0..=world.random.below(LINES_PER_STEP) {
                    lines.extend(open.coming.pop_front());
                }
            }
        }
        self.heard = now;
        for line in lines {
            let panics = world.panics.count();
            if let Err(error) = reflector.line(&line, now, random, &*self.watch.sink) {
                world.note(format_args!("{path}: {error}"));
                return;
            }
            let plural = self.watch.kind.plural;
            world.shows(|witness| witness.line(plural, &line));
            lost_by_panics(plural, panics, world);
            if world.faulty() && !line.starts_with(r#"{"type":"BOOKMARK""#) {
                if open.came.len() == REDELIVERED {
                    open.came.pop_front();
                }
                open.came.push_back(line);
            }
        }
        if ends {
            let _ = reflector.closed(now, random);
        } else {
            self.line = Line::Open(open);
        }
    }
}

/// Where something has panicked since, nobody knows what was seen of these objects; the list that follows tells.
fn lost_by_panics(plural: &str, panics: u64, world: &mut World) {
    if world.panics.count() != panics {
        world.shows(|witness| witness.is_lost(plural));
    }
}

/// A list, which may show the past or come in another order.
fn list(path: &str, query: &str, seen: u64, world: &mut World) -> Answer {
    let is_first_page = !query.contains("continue=");
    if world.faulty() && is_first_page && world.chance(4) {
        let revision = world.stage.revision().saturating_sub(1 + world.random.below(LAG)).max(1);
        let stale = format!("{path}?{query}&resourceVersion={revision}&resourceVersionMatch=Exact");
        let answer = world.stage.get(&stale);
        // What is too old is no longer known to any server.
        if answer.is_success() {
            world.struck(if seen == 0 && world.seen > revision { Fault::StaleStart } else { Fault::StaleList });
            return answer;
        }
    }
    let mut answer = world.stage.get(&format!("{path}?{query}"));
    if world.faulty()
        && world.chance(3)
        && let Ok(mut page) = serde_json::from_str::<Value>(&answer.body)
        && let Some(items) = page["items"].as_array_mut()
    {
        reorder(items, world);
        answer.body = page.to_string();
    }
    answer
}

/// Brings what a list holds into another order. A bookmark says that the list is complete and stays the last.
fn reorder<T: PartialEq + Clone + IsBookmark>(items: &mut [T], world: &mut World) {
    let end = items.iter().position(IsBookmark::is_bookmark).unwrap_or(items.len());
    let before = items[..end].to_vec();
    for last in (1..end).rev() {
        let other = usize::try_from(world.random.below(last as u64 + 1)).unwrap_or_default();
        items.swap(last, other);
    }
    if before != items[..end] {
        world.struck(Fault::Reordered);
    }
}

/// What may stand in a list.
trait IsBookmark {
    fn is_bookmark(&self) -> bool;
}

impl IsBookmark for String {
    fn is_bookmark(&self) -> bool {
        self.starts_with(r#"{"type":"BOOKMARK""#)
    }
}

impl IsBookmark for Value {
    fn is_bookmark(&self) -> bool {
        false
    }
}

/// Whether two of the events are about objects of one name.
fn names_one_twice(events: &VecDeque<String>) -> bool {
    let names = events.iter().filter_map(|event| {
        let event: Value = serde_json::from_str(event).ok()?;
        event.pointer("/object/metadata/name").and_then(Value::as_str).map(ToOwned::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() < all
}

fn refused(answer: &Answer) -> Failure {
    Failure { code: Some(answer.code), retry_after: answer.retry_after, message: answer.status().1 }
}
