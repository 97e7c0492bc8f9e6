//! How soon a replica leads after the leader has stopped or died, with the usual durations. On paused time, over kube's client
//! and the embedded API server in the same process; the test renews the Lease of the leader.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use envtest::shell::Server;
use futures::{StreamExt, stream};
use http::Method;
use jiff::Timestamp;
use koord_runtime::{
    Core,
    clock::{ScaledClock, SharedClock},
    lease::LeaderElectionConfig,
    manager::{Manager, RunError},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
};
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    answers::open,
    manager::{send, server, settings},
};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cards";
const DURATION: Duration = Duration::from_secs(15);
/// How soon a replica leads that is notified of the end of the Lease.
const AT_ONCE: Duration = Duration::from_millis(200);
/// How soon one leads that reads the Lease every retry period, 2 s with jitter.
const BY_READS: Duration = Duration::from_millis(4_600);

/// A leader that is no program.
struct Leader<'s> {
    server: &'s Server,
    renewals: u32,
}

impl<'s> Leader<'s> {
    fn new(server: &'s Server) -> Self {
        let spec = json!({"holderIdentity": "a", "leaseDurationSeconds": DURATION.as_secs()});
        let lease = json!({"metadata": {"namespace": "kube-system", "name": "cards"}, "spec": spec});
        assert_eq!(send(server, Method::POST, LEASES, &lease)["kind"], "Lease");
        Self { server, renewals: 0 }
    }

    /// Renews the Lease every two seconds, and at the end of the span.
    async fn renew_for(&mut self, span: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < span {
            sleep(Duration::from_secs(2)).await;
            self.renewals += 1;
            let (minutes, seconds) = (self.renewals / 60, self.renewals % 60);
            self.write(&json!({"renewTime": format!("2026-01-02T03:{minutes:02}:{seconds:02}.000000Z")}));
        }
    }

    fn release(&self) {
        self.write(&json!({"holderIdentity": "", "leaseDurationSeconds": 1}));
    }

    fn write(&self, spec: &Value) {
        assert_eq!(send(self.server, Method::PATCH, LEASE, &json!({"spec": spec}))["kind"], "Lease");
    }
}

/// A program that runs leader election.
struct Replica {
    leads: watch::Receiver<bool>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl Replica {
    fn start(identity: &str, seed: u64, router: Router) -> Self {
        let clock: SharedClock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let (random, metrics) = (Random::seeded(seed), Metrics::new().unwrap());
        let core = Core::new("cards", Arc::clone(&clock), random, metrics, Arc::new(recorder));
        let settings = settings(Some(LeaderElectionConfig::new("kube-system", "cards", identity)));
        let manager = Manager::timed_by(clock, core, Client::new(router, "default"), events, settings);
        let (leads, stop) = (manager.leading(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        Self { leads, stop, running }
    }

    fn is_leading(&self) -> bool {
        *self.leads.borrow()
    }

    /// Waits until it leads. Gives how long that took.
    async fn comes_to_lead(&mut self) -> Duration {
        let begin = Instant::now();
        timeout(Duration::from_mins(1), self.leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
        begin.elapsed()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
    }
}

/// How often the Lease was read, and watched.
#[derive(Default)]
struct Asked {
    reads: AtomicU32,
    watches: AtomicU32,
}

impl Asked {
    fn counts(&self) -> (u32, u32) {
        (self.reads.load(Ordering::Relaxed), self.watches.load(Ordering::Relaxed))
    }
}

/// The server, behind something that counts requests, and answers watches of leases instead of it where it has an answer.
fn behind(
    server: &Server,
    asked: &Arc<Asked>,
    answer: impl Fn() -> Option<Response> + Clone + Send + Sync + 'static,
) -> Router {
    let asked = Arc::clone(asked);
    server.router().layer(from_fn(move |request: Request, next: Next| {
        let is_about_leases = request.uri().path().contains("/leases");
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let mut answered = None;
        if is_about_leases && is_watch {
            asked.watches.fetch_add(1, Ordering::Relaxed);
            answered = answer();
        } else if is_about_leases && request.method() == Method::GET {
            asked.reads.fetch_add(1, Ordering::Relaxed);
        }
        async move {
            match answered {
                Some(response) => response,
                None => next.run(request).await,
            }
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_or_deleted_is_taken_at_once() {
    for seed in 0..6 {
        let (server, asked) = (server(), Arc::new(Asked::default()));
        let mut leader = Leader::new(&server);
        let mut replica = Replica::start("b", seed, behind(&server, &asked, || None));
        leader.renew_for(Duration::from_secs(20)).await;
        sleep(Duration::from_millis(700)).await;
        let (reads, watches) = asked.counts();
        assert!(reads <= 3 && watches == 1, "{reads} reads and {watches} watches in 20 s; it was 5 reads at least");
        assert!(!replica.is_leading(), "there is one leader");
        if seed % 2 == 0 {
            leader.release();
        } else {
            send(&server, Method::DELETE, LEASE, &json!({}));
        }
        let took = replica.comes_to_lead().await;
        assert!(took <= AT_ONCE, "{took:?}");
        sleep(Duration::from_mins(10)).await;
        assert!(replica.is_leading());
        assert_eq!(asked.counts().1, 1, "a leader does not watch");
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_leader_that_died_is_taken_when_it_is_over() {
    for seed in 0..6 {
        let server = server();
        let mut leader = Leader::new(&server);
        let mut replica = Replica::start("b", seed, server.router());
        leader.renew_for(Duration::from_secs(20)).await;
        let took = replica.comes_to_lead().await;
        assert!((DURATION..=DURATION + AT_ONCE).contains(&took), "{took:?} after the last renewal");
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_lease_cannot_be_watched_it_is_read_every_retry_period() {
    for code in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED] {
        let (server, asked) = (server(), Arc::new(Asked::default()));
        let mut leader = Leader::new(&server);
        let router = behind(&server, &asked, move || Some((code, "no").into_response()));
        let mut replica = Replica::start("b", 7, router);
        leader.renew_for(Duration::from_mins(2)).await;
        let (reads, watches) = asked.counts();
        assert!((27..=61).contains(&reads), "{code}: {reads} reads in two minutes");
        assert_eq!(watches, 1, "{code}");
        leader.renew_for(Duration::from_mins(4)).await;
        assert_eq!(asked.counts().1, 2, "{code}: the role may grant it by now");
        assert!(!replica.is_leading());
        leader.release();
        let took = replica.comes_to_lead().await;
        assert!(took <= BY_READS, "{code}: {took:?}");
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_holds_nothing_up() {
    for is_released in [true, false] {
        let (server, asked) = (server(), Arc::new(Asked::default()));
        let mut leader = Leader::new(&server);
        let mut replica = Replica::start("b", 7, behind(&server, &asked, || Some(open(""))));
        leader.renew_for(Duration::from_mins(1)).await;
        let (reads, watches) = asked.counts();
        assert!(reads >= 13 && watches <= 5, "{reads} reads and {watches} watches in a minute");
        assert!(!replica.is_leading());
        if is_released {
            leader.release();
            let took = replica.comes_to_lead().await;
            assert!(took <= BY_READS, "{took:?}");
        } else {
            let took = replica.comes_to_lead().await;
            assert!((DURATION..=DURATION + BY_READS).contains(&took), "{took:?} after the last renewal");
        }
        replica.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_expired_goes_on_from_the_next_read() {
    const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
    let (server, asked, is_first) = (server(), Arc::new(Asked::default()), Arc::new(AtomicBool::new(true)));
    let mut leader = Leader::new(&server);
    let expired = move || is_first.swap(false, Ordering::Relaxed).then(|| format!("{EXPIRED}\n").into_response());
    let mut replica = Replica::start("b", 7, behind(&server, &asked, expired));
    leader.renew_for(Duration::from_secs(40)).await;
    assert_eq!(asked.counts().1, 2);
    leader.release();
    let took = replica.comes_to_lead().await;
    assert!(took <= AT_ONCE, "{took:?}");
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_one_leads_and_the_other_after_it() {
    for seed in 0..4 {
        let server = server();
        let mut leader = Leader::new(&server);
        let one = Replica::start("b", seed, server.router());
        let another = Replica::start("c", seed + 100, server.router());
        leader.renew_for(Duration::from_secs(20)).await;
        leader.release();
        sleep(AT_ONCE).await;
        let is_one = one.is_leading();
        for _ in 0..1_000 {
            let leading = (one.is_leading(), another.is_leading());
            assert_eq!(leading, (is_one, !is_one), "there is one leader, and it stays");
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(send(&server, Method::GET, LEASE, &Value::Null)["spec"]["leaseTransitions"], 1);
        let (first, mut second) = if is_one { (one, another) } else { (another, one) };
        first.stop().await;
        let took = second.comes_to_lead().await;
        assert!(took <= AT_ONCE, "{took:?}");
        second.stop().await;
    }
}

/// The event of a release that another candidate has answered long ago.
#[tokio::test(start_paused = true)]
async fn an_event_that_is_late_makes_nobody_lead() {
    const LATE: &str = r#"{"type":"MODIFIED","object":{"metadata":{"name":"cards","namespace":"kube-system","resourceVersion":"1"},"spec":{"holderIdentity":"","leaseDurationSeconds":1}}}"#;
    let late = || {
        let event = async {
            sleep(Duration::from_secs(1)).await;
            Ok::<_, io::Error>(Bytes::from(format!("{LATE}\n")))
        };
        Some(Response::new(Body::from_stream(stream::once(event).chain(stream::pending()))))
    };
    let (server, asked) = (server(), Arc::new(Asked::default()));
    let mut leader = Leader::new(&server);
    let replica = Replica::start("b", 7, behind(&server, &asked, late));
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(asked.counts(), (2, 1), "the lease is read because of it");
    assert!(!replica.is_leading());
    leader.renew_for(Duration::from_secs(40)).await;
    assert!(!replica.is_leading());
    assert_eq!(send(&server, Method::GET, LEASE, &Value::Null)["spec"]["holderIdentity"], "a");
    replica.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_leads_and_who_does_no_longer_is_recorded_on_the_lease() {
    let server = server();
    let mut replica = Replica::start("b", 1, server.router());
    replica.comes_to_lead().await;
    sleep(Duration::from_secs(1)).await;
    let uid = send(&server, Method::GET, LEASE, &Value::Null)["metadata"]["uid"].clone();
    let taken = json!({"spec": {"holderIdentity": "another", "leaseDurationSeconds": 1}});
    assert_eq!(send(&server, Method::PATCH, LEASE, &taken)["kind"], "Lease");
    sleep(Duration::from_secs(10)).await;
    assert!(replica.is_leading(), "the other does not renew it");
    let events = send(&server, Method::GET, "/api/v1/namespaces/kube-system/events", &Value::Null);
    let told = |event: &Value| {
        assert_eq!(event["involvedObject"]["uid"], uid);
        let object = ["apiVersion", "kind", "name"].map(|field| event["involvedObject"][field].as_str().unwrap());
        assert_eq!(object, ["coordination.k8s.io/v1", "Lease", "cards"]);
        let fields = ["type", "reason", "message", "reportingComponent"];
        fields.map(|field| event[field].as_str().unwrap().to_owned()).join(" ")
    };
    let mut told: Vec<String> = events["items"].as_array().unwrap().iter().map(told).collect();
    told.sort();
    assert_eq!(told, ["Normal LeaderElection b became leader cards", "Normal LeaderElection b stopped leading cards"]);
    replica.stop().await;
}
