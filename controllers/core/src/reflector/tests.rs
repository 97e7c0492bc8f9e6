//! The protocol, step by step.

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

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
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
        match self.reflector.ask(self.now, &self.random, &self.store) {
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
        self.listed(revision, token, names).unwrap();
    }

    fn listed(&mut self, revision: u64, token: &str, names: &[(&str, u64)]) -> Result<(), ListError> {
        let items: Vec<String> = names.iter().map(|(name, revision)| node(name, *revision)).collect();
        let body = format!(
            r#"{{"metadata":{{"resourceVersion":"{revision}","continue":"{token}"}},"items":[{}]}}"#,
            items.join(",")
        );
        self.reflector.page(&body, self.now, &self.random, &self.store)
    }

    fn closed(&mut self) -> Result<(), WatchError> {
        self.reflector.closed(self.now, &self.random)
    }

    fn line(&mut self, line: &str) -> Result<(), WatchError> {
        self.reflector.line(line, self.now, &self.random, &self.store)
    }

    fn event(&mut self, type_: &str, object: &str) -> Result<(), WatchError> {
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
    stage.closed().unwrap();
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
    let error = stage.event("ERROR", r#"{"kind":"Status","code":410,"message":"too old"}"#).unwrap_err();
    assert_eq!(error.to_string(), "the server ended the watch: 410 too old");
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
    assert!(matches!(stage.line(r#"{"type":"ADDED","obj"#), Err(WatchError::Malformed(_))));
    assert_eq!(stage.ask(), "wait backoff..");
    assert_eq!(stage.ask(), WATCH_FROM_9);
    assert_eq!(stage.closed(), Err(WatchError::Short));
    assert_eq!(stage.ask(), "wait backoff..", "a watch that is closed at once, without an event");
    assert_eq!(stage.ask(), WATCH_FROM_9);
    stage.now = stage.now + Duration::from_secs(1);
    assert_eq!(stage.closed(), Ok(()));
    assert_eq!(stage.ask(), WATCH_FROM_9);
}

#[test]
fn a_failure_is_not_waited_out_once_its_cause_is_over() {
    let mut stage = Stage::new(Initial::Pages);
    stage.ask();
    stage.page(9, "", &[]);
    stage.ask();
    stage.fail(500);
    let begin = stage.now;
    stage.reflector.hasten(begin);
    assert_eq!((stage.ask().as_str(), stage.now), (WATCH_FROM_9, begin));
    stage.reflector.hasten(begin);
    assert_eq!(stage.reflector.phase(), Phase::Watch, "nothing is waited out");
}

#[test]
fn what_is_wrong_with_an_answer_is_reported_with_its_phase() {
    let mut stage = Stage::new(Initial::Pages);
    let page = |stage: &mut Stage, body: &str| {
        while stage.ask().starts_with("wait") {}
        assert_eq!(stage.reflector.phase(), Phase::List);
        stage.reflector.page(body, stage.now, &stage.random, &stage.store)
    };
    assert!(matches!(page(&mut stage, "<html>"), Err(ListError::Malformed(_))));
    assert_eq!(page(&mut stage, r#"{"metadata":{},"items":[]}"#), Err(ListError::NoRevision));
    assert_eq!(page(&mut stage, r#"{"metadata":{"resourceVersion":"9","continue":"x"},"items":[]}"#), Ok(()));
    assert_eq!(stage.reflector.phase(), Phase::List, "a page is to come");
    assert_eq!(page(&mut stage, r#"{"metadata":{"resourceVersion":"9"},"items":[]}"#), Ok(()));
    assert_eq!(stage.reflector.phase(), Phase::Watch);
    stage.ask();
    let error = stage.event("ERROR", r#"{"code":504,"message":"too new"}"#);
    assert_eq!(error, Err(WatchError::Status { code: 504, message: "too new".to_owned() }));
    assert_eq!(stage.reflector.phase(), Phase::List, "the list comes after the wait");

    let mut stage = Stage::new(Initial::Stream);
    stage.ask();
    stage.event("ADDED", &node("a", 3)).unwrap();
    assert_eq!(stage.reflector.phase(), Phase::List);
    assert_eq!(stage.closed(), Err(WatchError::Incomplete));
    assert_eq!(stage.ask(), "wait backoff..");
}

#[test]
fn a_line_may_be_written_in_any_way_and_a_cut_one_is_found_out() {
    let mut stage = Stage::new(Initial::Pages);
    stage.ask();
    stage.page(9, "", &[]);
    stage.ask();
    stage.event("ADDED", &node("a", 10)).unwrap();
    stage.line(&format!(r#"{{ "object": {}, "type": "ADDED" }}"#, node("b", 11))).unwrap();
    stage.line(&format!(r#"{{"type":"ADDED","object":{},"other":{{}}}}"#, node("c", 12))).unwrap();
    stage.line(&format!(r#"{{"type":"ADD\u0045D","object":{}}}"#, node("d", 13))).unwrap();
    stage.line(r#"{"type":"ADDED","object":{"metadata":{}}}"#).unwrap();
    assert_eq!(stage.names(), ["a", "b", "c", "d"]);
    assert_eq!(stage.reflector.revision(), Revision(13));
    let line = format!(r#"{{"type":"MODIFIED","object":{}}}"#, node("a", 14));
    assert!(matches!(stage.line(&line[..line.len() - 1]), Err(WatchError::Malformed(_))));
    assert_eq!(stage.reflector.revision(), Revision(13));
}

#[test]
fn a_server_that_asks_for_time_gets_it() {
    let mut stage = Stage::new(Initial::Pages);
    stage.ask();
    let failure = Failure { code: Some(429), retry_after: Some(Duration::from_secs(77)), message: String::new() };
    stage.reflector.failed(&failure, stage.now, &stage.random);
    assert_eq!(stage.reflector.ask(stage.now, &stage.random, &stage.store), Ask::Wait(Duration::from_secs(77)));
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
        assert_eq!(stage.listed(5, "", &[("old", 5)]), Err(ListError::Stale { listed: 5, seen: 9 }));
        assert_eq!(stage.names(), ["a"]);
    }
    while stage.ask().starts_with("wait") {}
    stage.page(5, "", &[("old", 5)]);
    assert_eq!(stage.names(), ["old"]);
    assert_eq!(stage.ask(), WATCH_FROM_9.replace('9', "5"));
}
