//! Which failures are reported, by the logs of a program whose API server is behind a broken gateway. On paused time.

#[path = "../../tests/it/answers.rs"]
mod answers;

use std::{
    fmt::{self, Write as _},
    io,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use futures::stream;
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use kube::Client;
use parking_lot::Mutex;
use tracing::{Event, Level, Metadata, field::Field, span, subscriber::DefaultGuard};

use self::answers::open;
use super::*;
use crate::{
    Core,
    clock::ScaledClock,
    intern::Interner,
    manager::{Manager, Settings},
    projection::{DecodeError, MetadataOnly, Projection},
    recorder::Recorder,
    reflector::{Initial, Selection},
};

const EVENT: &str =
    r#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"3"}}}"#;
const INITIAL_EVENTS_END: &str = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
const EXPIRED: &str = r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#;

/// A pod, of which nothing is kept.
#[derive(Debug, PartialEq)]
struct Pod;

impl Projection for Pod {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(_: MetadataOnly<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

/// Keeps what the followers of this thread log above the level of debugging: level, message and fields.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Logged {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().ends_with("follow")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &Field, value: &dyn fmt::Debug| {
            // Writing to a text does not fail.
            let _ = write!(line, " {}={value:?}", field.name());
        });
        self.0.lock().push(line);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// A program that watches pods.
struct Scene {
    core: Arc<Core>,
    logged: Logged,
    stop: CancellationToken,
    _logs: DefaultGuard,
}

impl Scene {
    /// `answer` gives the API server's answer to a query.
    fn new(initial: Initial, answer: impl Fn(&str) -> Response + Clone + Send + Sync + 'static) -> Self {
        let logged = Logged::default();
        let logs = tracing::subscriber::set_default(logged.clone());
        let clock: SharedClock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let (random, metrics) = (Random::seeded(7), Metrics::new().unwrap());
        let mut core = Core::new("follower", Arc::clone(&clock), random, metrics, Arc::new(recorder));
        core.set_initial(initial);
        core.store::<Pod>(&Selection::default());
        let router = Router::new().fallback(move |request: Request| {
            let response = answer(request.uri().query().unwrap_or_default());
            async move { response }
        });
        let settings = Settings {
            requests_per_second: 0.0,
            requests_burst: 0,
            leader_election: None,
            metrics: None,
            health: None,
            host: "test".to_owned(),
        };
        let manager = Manager::timed_by(clock, core, Client::new(router, "default"), events, settings);
        let (core, stop) = (Arc::clone(manager.core()), CancellationToken::new());
        tokio::spawn(manager.run(stop.clone()));
        Self { core, logged, stop, _logs: logs }
    }

    /// What is logged within the next two minutes.
    async fn logged(&self) -> Vec<String> {
        tokio::time::sleep(Duration::from_mins(2)).await;
        std::mem::take(&mut *self.logged.0.lock())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn is_watch(query: &str) -> bool {
    query.contains("watch=true")
}

fn list(revision: u32) -> Response {
    format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"{revision}"}},"items":[]}}"#).into_response()
}

/// A watch that sends these lines and breaks.
fn broken(lines: &str) -> Response {
    let sent = [Ok(Bytes::from(lines.to_owned())), Err(io::Error::other("connection reset"))];
    Response::new(Body::from_stream(stream::iter(sent)))
}

#[track_caller]
fn assert_reported(logged: &[String], says: &[&str]) {
    let [warning] = logged else { panic!("{logged:?}") };
    for part in ["WARN", r#"kind="Pod""#].iter().chain(says) {
        assert!(warning.contains(part), "{part:?} is not in {warning:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_fail_are_reported_although_every_list_is_good() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let scene = Scene::new(Initial::Pages, move |query| {
        if !is_watch(query) {
            list(9)
        } else if broken.load(Ordering::Relaxed) {
            (StatusCode::GATEWAY_TIMEOUT, "<html>slow").into_response()
        } else {
            open("")
        }
    });
    let says = ["cannot be watched; the program goes on trying", "code=504", "the API server answered 504: <html>slow"];
    assert_reported(&scene.logged().await, &says);
    assert_eq!(scene.core.readiness(), Ok(()), "the lists keep the cache up to date");
    assert_eq!(scene.logged().await, [""; 0], "it is reported once");
    is_broken.store(false, Ordering::Relaxed);
    let logged = scene.logged().await;
    assert!(matches!(&logged[..], [line] if line.contains("can be watched again")), "a silent watch works: {logged:?}");
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_that_never_ends_well_is_reported() {
    for (breaks, reason) in [(true, "Pod: "), (false, "closed the watch before the initial events were complete")] {
        let works = Arc::new(AtomicBool::new(false));
        let is_whole = Arc::clone(&works);
        let scene = Scene::new(Initial::Stream, move |_| {
            if is_whole.load(Ordering::Relaxed) {
                open(&format!("{EVENT}\n{INITIAL_EVENTS_END}\n"))
            } else if breaks {
                broken(&format!("{EVENT}\n"))
            } else {
                format!("{EVENT}\n").into_response()
            }
        });
        let logged = scene.logged().await;
        assert_reported(&logged, &["cannot be listed; the program goes on trying"]);
        assert!(!logged[0].contains("code="), "{logged:?}");
        let unready = scene.core.readiness().unwrap_err();
        assert!(unready.starts_with("caches are not complete: Pod\nPod: "), "{unready}");
        assert!(unready.contains(reason), "{unready}");
        works.store(true, Ordering::Relaxed);
        let logged = scene.logged().await;
        assert!(matches!(&logged[..], [line] if line.contains("can be listed again")), "{logged:?}");
        assert_eq!(scene.core.readiness(), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn lists_from_the_past_and_answers_that_are_no_lists_are_reported_with_what_is_wrong() {
    let scene = Scene::new(Initial::Pages, |_| "<html>no".into_response());
    assert_reported(&scene.logged().await, &["cannot be listed", "code=200", "this is not a list: <html>no"]);
    drop(scene);

    let lists = Arc::new(AtomicU32::new(0));
    let scene = Scene::new(Initial::Pages, move |query| {
        if !is_watch(query) {
            list(if lists.fetch_add(1, Ordering::Relaxed) == 0 { 9 } else { 5 })
        } else if query.contains("resourceVersion=9") {
            broken(&format!("{EXPIRED}\n"))
        } else {
            open("")
        }
    });
    let logged = scene.logged().await;
    assert_eq!(logged.len(), 2, "{logged:?}");
    assert_reported(&logged[..1], &["cannot be listed", "a list of revision 5 while 9 was seen"]);
    assert!(!logged[0].contains("code="), "{logged:?}");
    assert!(logged[1].contains("can be listed again"), "the server was restored: {logged:?}");
}
