//! Keeps a cache equal to a collection of the API server: the protocol of list and watch as a state machine.
//!
//! Its driver, a task or a simulation, asks it what to do ([`Reflector::ask`]), does that, and reports the result. It knows no sockets and
//! no clock, so the same code runs behind tokio and inside the step simulation. The rules are client-go's: list by
//! pages or stream the initial events, watch from there, resume at the last revision, list again when that has
//! expired, and wait 0.8 s to 30 s (with jitter, reset after two quiet minutes) after failures.

mod backoff;
mod failure;
mod query;
#[cfg(test)]
mod tests;
mod wire;

use std::time::Duration;

use serde_json::value::RawValue;

pub use self::failure::{Failure, ListError, WatchError};
use self::{
    backoff::Backoff,
    query::Query,
    wire::{Bookmark, Event, Status},
};
use crate::{cache::Revision, clock::Moment, list::Page, projection::DecodeError, random::Random, store::Sink};

/// How the first content of a cache is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Initial {
    /// As a stream of events (`sendInitialEvents`); a server that cannot do that is asked for pages instead.
    #[default]
    Stream,
    /// As a list, page by page.
    Pages,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask {
    /// GET the collection with this query; answer with [`Reflector::page`] or [`Reflector::failed`].
    List(String),
    /// GET the collection with this query and feed every line to [`Reflector::line`]; at the end, [`Reflector::closed`].
    /// When nothing at all comes for `idle`, the connection is dead: close it.
    Watch {
        /// Query of the request.
        query: String,
        /// Longest silence.
        idle: Duration,
    },
    /// Ask again after this time.
    Wait(Duration),
}

/// Which part of the protocol a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Fetching the list, by pages or as a stream of initial events.
    List,
    /// Watching the changes of the list.
    Watch,
}

/// The part of the collection that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// One namespace; empty for all.
    pub namespace: String,
    /// A field selector; empty for none.
    pub fields: String,
    /// A label selector; empty for none.
    pub labels: String,
}

/// List and watch of one collection.
#[derive(Debug)]
pub struct Reflector {
    selection: Selection,
    initial: Initial,
    state: State,
    /// The newest revision that was seen; the watch resumes here.
    revision: Revision,
    /// Lists in a row that were older than what had been seen.
    stale_lists: u32,
    backoff: Backoff,
    restarts: u64,
    /// When the server last answered or sent something; none before the first time.
    contact: Option<Moment>,
    /// When the driver last asked or reported something; none before the first time.
    progress: Option<Moment>,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The next page of a list has to be fetched; an empty token starts a new list.
    Listing { token: String },
    /// The initial events are to come, or come just now.
    Streaming { open: bool },
    /// The list is known; its changes are to come, or come just now.
    Watching { since: Option<Moment>, heard: bool },
    /// A failure is waited out.
    Resting { until: Moment, then: Then },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    List,
    Watch,
}

impl Reflector {
    const PAGE: u32 = 500;
    /// A watch that is closed sooner, without an event, has failed.
    const SHORT: Duration = Duration::from_secs(1);
    /// So many stale lists in a row mean that the server itself went back in time, as after a restore.
    const STALE_LISTS_MAX: u32 = 5;

    /// Nothing is known yet.
    pub fn new(selection: Selection, initial: Initial) -> Self {
        let mut reflector = Self {
            selection,
            initial,
            state: State::Listing { token: String::new() },
            revision: Revision::default(),
            stale_lists: 0,
            backoff: Backoff::default(),
            restarts: 0,
            contact: None,
            progress: None,
        };
        reflector.restart();
        reflector.restarts = 0;
        reflector
    }

    /// Which part of the collection is wanted.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The newest revision that was seen.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How often the collection had to be fetched anew.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// When the server last answered or sent something; none before the first time.
    pub fn contact(&self) -> Option<Moment> {
        self.contact
    }

    /// When the driver last asked or reported something; none before the first time.
    pub fn progress(&self) -> Option<Moment> {
        self.progress
    }

    /// Whether the list is being fetched, or its changes are watched. While a failure is waited out: what comes after the wait.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Listing { .. } | State::Streaming { .. } | State::Resting { then: Then::List, .. } => Phase::List,
            State::Watching { .. } | State::Resting { then: Then::Watch, .. } => Phase::Watch,
        }
    }

    /// The driver was interrupted where nobody knows: the collection is fetched anew.
    pub fn reset(&mut self) {
        self.restart();
    }

    /// What made requests fail is over: a failure is not waited out any longer.
    pub fn hasten(&mut self, now: Moment) {
        if let State::Resting { until, .. } = &mut self.state {
            *until = now;
        }
    }

    /// What to do next. What panicked in the sink is repeated before.
    pub fn ask(&mut self, now: Moment, random: &Random, sink: &dyn Sink) -> Ask {
        self.progress = Some(now);
        let wants_list = sink.recover();
        if let State::Resting { until, then } = self.state {
            if now < until {
                return Ask::Wait(until.since(now));
            }
            match then {
                Then::List => self.restart(),
                Then::Watch => self.state = State::Watching { since: None, heard: false },
            }
        }
        if wants_list && matches!(self.state, State::Watching { .. }) {
            self.restart();
        }
        let mut query = Query::of(&self.selection);
        match &mut self.state {
            State::Listing { token } => {
                query.add("limit", &Self::PAGE.to_string());
                if !token.is_empty() {
                    query.add("continue", token);
                }
                Ask::List(query.list())
            }
            State::Streaming { open } => {
                *open = true;
                query.add("sendInitialEvents", "true").add("resourceVersionMatch", "NotOlderThan");
                if self.revision > Revision::default() {
                    query.add("resourceVersion", &self.revision.0.to_string());
                }
                query.watch(random)
            }
            State::Watching { since, .. } => {
                *since = Some(now);
                query.add("resourceVersion", &self.revision.0.to_string());
                query.watch(random)
            }
            State::Resting { .. } => Ask::Wait(Duration::ZERO),
        }
    }

    /// A page of the list came. An error is waited out.
    pub fn page(&mut self, body: &str, now: Moment, random: &Random, sink: &dyn Sink) -> Result<(), ListError> {
        self.was_in_contact(now);
        let taken = self.take_page(body, sink);
        if let Err(error) = &taken {
            self.rest(Then::List, None, &error.to_string(), now, random);
        }
        taken
    }

    fn take_page(&mut self, body: &str, sink: &dyn Sink) -> Result<(), ListError> {
        let State::Listing { token } = &self.state else { return Ok(()) };
        let first = token.is_empty();
        let page = Page::<&RawValue>::parse(body).map_err(|error| ListError::Malformed(error.to_string()))?;
        let revision = Revision::parse(&page.metadata.resource_version).map_err(|_| ListError::NoRevision)?;
        if first {
            let stale = revision < self.revision;
            if stale && self.stale_lists < Self::STALE_LISTS_MAX {
                self.stale_lists += 1;
                return Err(ListError::Stale { listed: revision.0, seen: self.revision.0 });
            }
            self.stale_lists = 0;
            sink.begin_list(stale);
            self.revision = revision;
        }
        for item in page.items {
            note(sink.upsert(item.get()));
        }
        self.state = if page.metadata.token.is_empty() {
            sink.end_list();
            State::Watching { since: None, heard: false }
        } else {
            State::Listing { token: page.metadata.token }
        };
        Ok(())
    }

    /// A line of the watch came.
    pub fn line(&mut self, line: &str, now: Moment, random: &Random, sink: &dyn Sink) -> Result<(), WatchError> {
        self.was_in_contact(now);
        if self.is_open()
            && let Some((type_, object)) = wire::split(line)
            && let Some(Ok(revision)) = change(type_, object, sink)
        {
            self.saw(revision);
            return Ok(());
        }
        let event: Event<'_> = match serde_json::from_str(line) {
            Ok(event) => event,
            Err(error) => {
                self.interrupted(None, &format!("a broken line: {error}"), now, random);
                return Err(WatchError::Malformed(error.to_string()));
            }
        };
        if let State::Watching { heard, .. } = &mut self.state {
            *heard = true;
        }
        if let State::Streaming { open: true } = self.state {
            self.state = State::Streaming { open: false };
            sink.begin_list(false);
        }
        if let Some(seen) = change(&event.type_, event.object.get(), sink) {
            if let Some(revision) = note(seen) {
                self.saw(revision);
            }
            return Ok(());
        }
        match event.type_.as_ref() {
            "BOOKMARK" => self.bookmark(event.object, sink),
            "ERROR" => {
                let status: Status<'_> = serde_json::from_str(event.object.get()).unwrap_or_default();
                self.interrupted(Some(status.code), &status.message, now, random);
                return Err(WatchError::Status { code: status.code, message: status.message.into_owned() });
            }
            other => {
                self.interrupted(None, "an unknown type of event", now, random);
                return Err(WatchError::Malformed(format!("unknown type {other:?}")));
            }
        }
        Ok(())
    }

    /// The server closed the watch. It does so now and then; an error says that it came too early, and is waited out.
    pub fn closed(&mut self, now: Moment, random: &Random) -> Result<(), WatchError> {
        self.was_in_contact(now);
        let (then, error) = match self.state {
            State::Watching { since, heard: false } if since.is_some_and(|since| now.since(since) < Self::SHORT) => {
                (Then::Watch, WatchError::Short)
            }
            State::Watching { .. } => {
                self.state = State::Watching { since: None, heard: false };
                return Ok(());
            }
            State::Streaming { .. } => (Then::List, WatchError::Incomplete),
            State::Listing { .. } | State::Resting { .. } => return Ok(()),
        };
        self.rest(then, None, &error.to_string(), now, random);
        Err(error)
    }

    /// A request failed, or the connection of a watch broke.
    pub fn failed(&mut self, failure: &Failure, now: Moment, random: &Random) {
        self.progress = Some(now);
        let cannot_stream = matches!(failure.code, Some(400 | 403 | 404 | 405 | 406 | 415 | 422));
        match self.state {
            State::Streaming { .. } if cannot_stream => {
                tracing::debug!(reason = failure.message, "initial events are not streamed, fetching pages");
                self.initial = Initial::Pages;
                self.restart();
            }
            State::Listing { ref token } if failure.code == Some(410) && !token.is_empty() => self.restart(),
            State::Resting { .. } => {}
            _ => {
                let Failure { code, retry_after, message } = failure;
                if let Some(wait) = retry_after {
                    self.rest(self.resume(*code), Some(*wait), message, now, random);
                } else {
                    self.interrupted(*code, message, now, random);
                }
            }
        }
    }

    fn interrupted(&mut self, code: Option<u16>, message: &str, now: Moment, random: &Random) {
        let then = self.resume(code);
        // An expired revision is no sign of trouble: the list comes at once the first time.
        if then == Then::List && code == Some(410) && matches!(self.state, State::Watching { heard: true, .. }) {
            tracing::debug!(message, "the watched revision has expired, listing again");
            return self.restart();
        }
        self.rest(then, None, message, now, random);
    }

    /// Whether the watch can go on where it was.
    fn resume(&self, code: Option<u16>) -> Then {
        // 410: the revision is gone. 504: the server is behind it, as after a restore.
        match (&self.state, code) {
            (State::Watching { .. }, Some(410 | 504)) => Then::List,
            (State::Watching { .. }, _) => Then::Watch,
            _ => Then::List,
        }
    }

    fn rest(&mut self, then: Then, at_least: Option<Duration>, message: &str, now: Moment, random: &Random) {
        let wait = self.backoff.next(now, random).max(at_least.unwrap_or_default());
        tracing::debug!(message, wait_ms = wait.as_millis(), "watch interrupted");
        self.state = State::Resting { until: now + wait, then };
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.state = match self.initial {
            Initial::Stream => State::Streaming { open: false },
            Initial::Pages => State::Listing { token: String::new() },
        };
    }

    fn was_in_contact(&mut self, now: Moment) {
        (self.contact, self.progress) = (Some(now), Some(now));
    }

    /// Whether a line of the watch came before.
    fn is_open(&self) -> bool {
        matches!(self.state, State::Watching { heard: true, .. } | State::Streaming { open: false })
    }

    fn saw(&mut self, revision: Revision) {
        if !matches!(self.state, State::Streaming { .. }) {
            self.revision = self.revision.max(revision);
        }
    }

    fn bookmark(&mut self, object: &RawValue, sink: &dyn Sink) {
        let Ok(bookmark) = serde_json::from_str::<Bookmark<'_>>(object.get()) else { return };
        let Ok(revision) = Revision::parse(&bookmark.metadata.resource_version) else { return };
        if let State::Streaming { .. } = self.state {
            if bookmark.metadata.annotations.initial_events_end != "true" {
                return;
            }
            sink.end_list();
            self.state = State::Watching { since: None, heard: true };
        } else {
            // Lists wait for the end of the watch.
            sink.recover();
        }
        self.revision = self.revision.max(revision);
    }
}

/// Hands on the change of an event; none of another type.
fn change(type_: &str, object: &str, sink: &dyn Sink) -> Option<Result<Revision, DecodeError>> {
    match type_ {
        "ADDED" | "MODIFIED" => Some(sink.upsert(object)),
        "DELETED" => Some(sink.remove(object)),
        _ => None,
    }
}

fn note(seen: Result<Revision, DecodeError>) -> Option<Revision> {
    seen.inspect_err(|reason| tracing::warn!(%reason, "an object without a readable name was skipped")).ok()
}
