//! Keeps a cache equal to a collection of the API server: the protocol of list and watch as a state machine.
//!
//! A shell asks it what to do ([`Reflector::ask`]), does that, and tells it what came back. It knows no sockets and
//! no clock, so the same code runs behind tokio and inside the step simulation. The rules are client-go's: list by
//! pages or stream the initial events, watch from there, resume at the last revision, list again when that has
//! expired, and wait 0.8 s to 30 s (with jitter, reset after two quiet minutes) after failures.

use std::{borrow::Cow, fmt::Write as _, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    cache::Revision,
    clock::Moment,
    projection::{Unreadable, nullable},
    random::Random,
    store::Sink,
};

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
    /// GET the collection with this query and feed every line to [`Reflector::line`]; then [`Reflector::closed`].
    /// When nothing at all comes for `idle`, the connection is dead: hang up.
    Watch {
        /// Query of the request.
        query: String,
        /// Longest silence.
        idle: Duration,
    },
    /// Ask again after this time.
    Wait(Duration),
}

/// What went wrong with a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status, when the server answered.
    pub code: Option<u16>,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    /// What to tell a person.
    pub message: String,
}

impl Failure {
    /// Something other than an answer of the server.
    pub fn local(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Why a watch must be ended before the server ends it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HangUp {
    /// The server reported an error inside the stream.
    #[error("the server ended the watch: {0}")]
    Told(String),
    /// The line is not a watch event: bytes were lost.
    #[error("a broken line in the watch: {0}")]
    Broken(String),
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

/// See the module.
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
    /// The server is asked to end a watch after 240 s to 300 s, so that load spreads anew now and then.
    const WATCH_TIME: Duration = Duration::from_mins(4);
    const IDLE_MARGIN: Duration = Duration::from_secs(5);
    /// A watch that ends sooner without a word is a failure.
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

    /// What to do next.
    pub fn ask(&mut self, now: Moment, random: &Random) -> Ask {
        if let State::Resting { until, then } = self.state {
            if now < until {
                return Ask::Wait(until.since(now));
            }
            match then {
                Then::List => self.restart(),
                Then::Watch => self.state = State::Watching { since: None, heard: false },
            }
        }
        let mut query = Query::of(&self.selection);
        match &mut self.state {
            State::Listing { token } => {
                query.add("limit", &Self::PAGE.to_string());
                if !token.is_empty() {
                    query.add("continue", token);
                }
                Ask::List(query.0)
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

    /// A page of the list came.
    pub fn page(&mut self, body: &str, now: Moment, random: &Random, sink: &dyn Sink) {
        let State::Listing { token } = &self.state else { return };
        let first = token.is_empty();
        let page: Page<'_> = match serde_json::from_str(body) {
            Ok(page) => page,
            Err(error) => {
                return self.rest(Then::List, None, &format!("a list that is not JSON: {error}"), now, random);
            }
        };
        let Ok(revision) = Revision::parse(&page.metadata.resource_version) else {
            return self.rest(Then::List, None, "a list without a resourceVersion", now, random);
        };
        if first {
            let stale = revision < self.revision;
            if stale && self.stale_lists < Self::STALE_LISTS_MAX {
                self.stale_lists += 1;
                let message = format!("a list of revision {} while {} was seen", revision.0, self.revision.0);
                return self.rest(Then::List, None, &message, now, random);
            }
            self.stale_lists = 0;
            sink.begin_list(stale);
            self.revision = revision;
        }
        for item in page.items.unwrap_or_default() {
            note(sink.upsert(item.get()));
        }
        self.state = if page.metadata.continue_.is_empty() {
            sink.end_list();
            State::Watching { since: None, heard: false }
        } else {
            State::Listing { token: page.metadata.continue_.into_owned() }
        };
    }

    /// A line of the watch came.
    pub fn line(&mut self, line: &str, now: Moment, random: &Random, sink: &dyn Sink) -> Result<(), HangUp> {
        let event: Event<'_> = match serde_json::from_str(line) {
            Ok(event) => event,
            Err(error) => {
                self.interrupted(None, &format!("a broken line: {error}"), now, random);
                return Err(HangUp::Broken(error.to_string()));
            }
        };
        if let State::Watching { heard, .. } = &mut self.state {
            *heard = true;
        }
        if let State::Streaming { open: true } = self.state {
            self.state = State::Streaming { open: false };
            sink.begin_list(false);
        }
        match event.type_.as_ref() {
            "ADDED" | "MODIFIED" => self.saw(sink.upsert(event.object.get())),
            "DELETED" => self.saw(sink.remove(event.object.get())),
            "BOOKMARK" => self.bookmark(event.object, sink),
            "ERROR" => {
                let status: Status<'_> = serde_json::from_str(event.object.get()).unwrap_or_default();
                self.interrupted(Some(status.code), &status.message, now, random);
                return Err(HangUp::Told(format!("{} {}", status.code, status.message)));
            }
            other => {
                self.interrupted(None, "an unknown type of event", now, random);
                return Err(HangUp::Broken(format!("unknown type {other:?}")));
            }
        }
        Ok(())
    }

    /// The watch ended without an error.
    pub fn closed(&mut self, now: Moment, random: &Random) {
        match self.state {
            State::Watching { since, heard } => {
                if !heard && since.is_some_and(|since| now.since(since) < Self::SHORT) {
                    self.rest(Then::Watch, None, "a watch that ended at once", now, random);
                } else {
                    self.state = State::Watching { since: None, heard: false };
                }
            }
            State::Streaming { .. } => {
                self.rest(Then::List, None, "the initial events ended before they were complete", now, random);
            }
            State::Listing { .. } | State::Resting { .. } => {}
        }
    }

    /// A request failed, or the connection of a watch broke.
    pub fn failed(&mut self, failure: &Failure, now: Moment, random: &Random) {
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

    fn saw(&mut self, seen: Result<Revision, Unreadable>) {
        if let Some(revision) = note(seen)
            && !matches!(self.state, State::Streaming { .. })
        {
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
        }
        self.revision = self.revision.max(revision);
    }
}

fn note(seen: Result<Revision, Unreadable>) -> Option<Revision> {
    seen.inspect_err(|reason| tracing::warn!(%reason, "an object without a readable name was skipped")).ok()
}

/// Waits between failures: 0.8 s doubling up to 30 s, each with up to as much again at random.
#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
    last: Moment,
}

impl Backoff {
    const BASE: Duration = Duration::from_millis(800);
    const MAX: Duration = Duration::from_secs(30);
    const RESET: Duration = Duration::from_mins(2);

    fn next(&mut self, now: Moment, random: &Random) -> Duration {
        if now.since(self.last) > Self::RESET {
            self.failures = 0;
        }
        self.last = now;
        let wait = Self::BASE.saturating_mul(1 << self.failures.min(6)).min(Self::MAX);
        self.failures = self.failures.saturating_add(1);
        random.jitter(wait, 1.0)
    }
}

struct Query(String);

impl Query {
    fn of(selection: &Selection) -> Self {
        let mut query = Self(String::new());
        if !selection.fields.is_empty() {
            query.add("fieldSelector", &selection.fields);
        }
        if !selection.labels.is_empty() {
            query.add("labelSelector", &selection.labels);
        }
        query
    }

    fn add(&mut self, name: &str, value: &str) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => self.0.push(char::from(byte)),
                _ => {
                    // Writing into a String cannot fail.
                    let _ = write!(self.0, "%{byte:02X}");
                }
            }
        }
        self
    }

    fn watch(mut self, random: &Random) -> Ask {
        let time = random.jitter(Reflector::WATCH_TIME, 0.25);
        self.add("watch", "true").add("allowWatchBookmarks", "true").add("timeoutSeconds", &time.as_secs().to_string());
        Ask::Watch { query: self.0, idle: time + Reflector::IDLE_MARGIN }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    metadata: PageMetadata<'a>,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata<'a> {
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, rename = "continue", default, deserialize_with = "nullable")]
    continue_: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    code: u16,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Bookmark<'a> {
    #[serde(borrow)]
    metadata: BookmarkMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow, default)]
    annotations: BookmarkAnnotations<'a>,
}

#[derive(Default, Deserialize)]
struct BookmarkAnnotations<'a> {
    #[serde(borrow, rename = "k8s.io/initial-events-end", default)]
    initial_events_end: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_resource::controller::ResourceKind;

    use super::*;
    use crate::{
        intern::Interner,
        projection::{MetadataOnly, Projection},
        store::Store,
    };

    #[derive(Debug, PartialEq)]
    struct Name(Arc<str>);

    impl Projection for Name {
        const KIND: ResourceKind = ResourceKind::NODE;
        type Wire<'a> = MetadataOnly<'a>;
        type Index = ();

        fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
            Ok(Self(strings.intern(&wire.metadata.name)))
        }
    }

    struct Stage {
        reflector: Reflector,
        store: Store<Name>,
        random: Random,
        now: Moment,
    }

    impl Stage {
        fn new(initial: Initial) -> Self {
            Self {
                reflector: Reflector::new(Selection::default(), initial),
                store: Store::default(),
                random: Random::seeded(1),
                now: Moment::at(Duration::from_secs(1000)),
            }
        }

        fn ask(&mut self) -> String {
            match self.reflector.ask(self.now, &self.random) {
                Ask::List(query) => format!("list {query}"),
                Ask::Watch { query, .. } => {
                    let parameters = query.split('&').filter(|parameter| !parameter.starts_with("timeoutSeconds"));
                    format!("watch {}", parameters.collect::<Vec<_>>().join("&"))
                }
                Ask::Wait(span) => {
                    self.now = self.now + span;
                    format!("wait {}..{}", if span >= Backoff::BASE { "backoff" } else { "short" }, "")
                }
            }
        }

        fn page(&mut self, revision: u64, token: &str, names: &[(&str, u64)]) {
            let items: Vec<String> = names.iter().map(|(name, revision)| node(name, *revision)).collect();
            let body = format!(
                r#"{{"metadata":{{"resourceVersion":"{revision}","continue":"{token}"}},"items":[{}]}}"#,
                items.join(",")
            );
            self.reflector.page(&body, self.now, &self.random, &self.store);
        }

        fn line(&mut self, line: &str) -> Result<(), HangUp> {
            self.reflector.line(line, self.now, &self.random, &self.store)
        }

        fn event(&mut self, type_: &str, object: &str) -> Result<(), HangUp> {
            self.line(&format!(r#"{{"type":"{type_}","object":{object}}}"#))
        }

        fn fail(&mut self, code: u16) {
            let failure = Failure { code: Some(code), ..Failure::default() };
            self.reflector.failed(&failure, self.now, &self.random);
        }

        fn names(&self) -> Vec<String> {
            self.store.read().keys().map(ToString::to_string).collect()
        }
    }

    fn node(name: &str, revision: u64) -> String {
        format!(r#"{{"metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{revision}"}}}}"#)
    }

    const WATCH_FROM_9: &str = "watch resourceVersion=9&watch=true&allowWatchBookmarks=true";
    const STREAM: &str =
        "watch sendInitialEvents=true&resourceVersionMatch=NotOlderThan&watch=true&allowWatchBookmarks=true";

    #[test]
    fn pages_are_fetched_and_then_watched_from_the_lists_revision() {
        let mut stage = Stage::new(Initial::Pages);
        assert_eq!(stage.ask(), "list limit=500");
        stage.page(9, "to/ken=", &[("a", 3)]);
        assert!(!stage.store.synced());
        assert_eq!(stage.ask(), "list limit=500&continue=to%2Fken%3D");
        stage.page(9, "", &[("b", 4)]);
        assert!(stage.store.synced());
        assert_eq!(stage.ask(), WATCH_FROM_9);
        stage.event("DELETED", &node("a", 10)).unwrap();
        stage.event("ADDED", &node("c", 11)).unwrap();
        stage.event("BOOKMARK", r#"{"metadata":{"resourceVersion":"20"}}"#).unwrap();
        assert_eq!(stage.names(), ["b", "c"]);
        stage.reflector.closed(stage.now, &stage.random);
        assert_eq!(stage.ask(), WATCH_FROM_9.replace('9', "20"));
    }

    #[test]
    fn initial_events_replace_the_list_and_a_server_that_cannot_is_asked_for_pages() {
        let mut stage = Stage::new(Initial::Stream);
        assert_eq!(stage.ask(), STREAM);
        stage.event("ADDED", &node("a", 3)).unwrap();
        assert!(!stage.store.synced());
        let end = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        stage.event("BOOKMARK", end).unwrap();
        assert!(stage.store.synced());
        stage.event("ADDED", &node("b", 10)).unwrap();
        assert_eq!(stage.names(), ["a", "b"]);

        let mut stage = Stage::new(Initial::Stream);
        stage.ask();
        stage.fail(422);
        assert_eq!(stage.ask(), "list limit=500");
    }

    #[test]
    fn an_expired_revision_is_listed_again_and_what_is_gone_is_dropped() {
        let mut stage = Stage::new(Initial::Pages);
        stage.ask();
        stage.page(9, "", &[("a", 3), ("b", 4)]);
        stage.ask();
        stage.event("MODIFIED", &node("b", 10)).unwrap();
        let told = stage.event("ERROR", r#"{"kind":"Status","code":410,"message":"too old"}"#).unwrap_err();
        assert_eq!(told.to_string(), "the server ended the watch: 410 too old");
        assert_eq!(stage.ask(), "list limit=500");
        stage.page(12, "", &[("b", 10)]);
        assert_eq!(stage.names(), ["b"]);
        assert_eq!(stage.reflector.restarts(), 1);
    }

    #[test]
    fn failures_are_waited_out_and_the_watch_resumes() {
        let mut stage = Stage::new(Initial::Pages);
        stage.ask();
        stage.page(9, "", &[]);
        stage.ask();
        stage.fail(500);
        assert_eq!(stage.ask(), "wait backoff..");
        assert_eq!(stage.ask(), WATCH_FROM_9);
        assert!(matches!(stage.line(r#"{"type":"ADDED","obj"#), Err(HangUp::Broken(_))));
        assert_eq!(stage.ask(), "wait backoff..");
        assert_eq!(stage.ask(), WATCH_FROM_9);
        stage.reflector.closed(stage.now, &stage.random);
        assert_eq!(stage.ask(), "wait backoff..", "a watch that ends at once without a word");
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it() {
        let mut stage = Stage::new(Initial::Pages);
        stage.ask();
        let failure = Failure { code: Some(429), retry_after: Some(Duration::from_secs(77)), message: String::new() };
        stage.reflector.failed(&failure, stage.now, &stage.random);
        assert_eq!(stage.reflector.ask(stage.now, &stage.random), Ask::Wait(Duration::from_secs(77)));
    }

    #[test]
    fn a_list_from_the_past_is_refused_until_it_is_clear_that_the_server_was_restored() {
        let mut stage = Stage::new(Initial::Pages);
        stage.ask();
        stage.page(9, "", &[("a", 9)]);
        stage.ask();
        stage.event("ERROR", r#"{"code":410}"#).unwrap_err();
        for _ in 0..5 {
            while stage.ask().starts_with("wait") {}
            stage.page(5, "", &[("old", 5)]);
            assert_eq!(stage.names(), ["a"]);
        }
        while stage.ask().starts_with("wait") {}
        stage.page(5, "", &[("old", 5)]);
        assert_eq!(stage.names(), ["old"]);
        assert_eq!(stage.ask(), WATCH_FROM_9.replace('9', "5"));
    }

    #[test]
    fn failures_in_a_row_wait_longer_up_to_half_a_minute_and_are_forgotten_after_two() {
        let mut backoff = Backoff::default();
        let random = Random::seeded(3);
        let mut now = Moment::at(Duration::from_mins(10));
        for expected in [800, 1600, 3200, 6400, 12800, 25600, 30000, 30000] {
            let wait = u64::try_from(backoff.next(now, &random).as_millis()).unwrap();
            assert!((expected..=2 * expected).contains(&wait), "{wait} ms, expected about {expected}");
            now = now + Duration::from_millis(wait);
        }
        let wait = backoff.next(now + Duration::from_secs(121), &random);
        assert!(wait <= 2 * Backoff::BASE);
    }
}
