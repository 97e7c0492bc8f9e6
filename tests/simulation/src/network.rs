//! The way from the program's tasks to the server, and the faults on it.

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, BodyDataStream, to_bytes},
};
use bytes::Bytes;
use envtest::{request::ApiRequest, server::Outcome};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{Method, Request, Response, Uri, header};
use koord_runtime::{
    clock::{Moment, SharedClock},
    random::Random,
    write::Answer,
};
use koord_simulator::{
    Fault,
    parts::{Panics, Trace, failure},
};
use kube::client::Body as KubeBody;
use parking_lot::Mutex;
use serde_json::Value;
use tower::{Service, ServiceExt};

use crate::{Options, witness::ODD};

/// How long an answer may be on its way, at most.
const DELAY: Duration = Duration::from_secs(3);
/// How long a watch may be silent, at most.
const SILENCE: Duration = Duration::from_secs(90);
/// How long a program that stands still does so, at least, and up to as much again: longer than a lease.
const STALL: Duration = Duration::from_mins(3);
/// The longest that it stands still.
pub(crate) const STALL_MAX: Duration = STALL.saturating_mul(2);
/// More requests than this at one moment are a hot loop.
const REQUESTS_AT_ONCE: u32 = 5_000;
/// How many revisions a list may be behind, at most.
const LAG: u64 = 30;

/// What goes wrong between programs and the server, and what was seen of their requests.
pub(crate) struct Disruptions {
    pub(crate) panics: Arc<Panics>,
    clock: SharedClock,
    state: Mutex<State>,
}

struct State {
    random: Random,
    trace: Trace,
    faults: BTreeMap<Fault, u64>,
    trouble: bool,
    /// See [`Options::calm`].
    calm: bool,
    outage_until: Moment,
    revoked: Option<Revoked>,
    /// Until when a replica stands still.
    stalled: BTreeMap<u64, Moment>,
    /// When the replica of this number has last asked for the lease, and got it.
    renewed: BTreeMap<u64, Moment>,
    /// Writes that were carried out and count: [`Asked::is_counted`].
    writes: u64,
    at_once: (Moment, u32),
    broken: Option<String>,
}

/// The reason of the event that each leader writes once about a gang that lacks members.
const SAID_BY_EACH_LEADER: &str = "GangIncomplete";

/// What every replica writes, whether it leads or not: the lease, events, and the certificates of its webhooks.
const OF_EVERY_REPLICA: [&str; 6] = [
    "leases",
    "events",
    "secrets",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "customresourcedefinitions",
];

/// A permission that is taken away.
struct Revoked {
    verb: &'static str,
    plural: &'static str,
    until: Moment,
}

/// The connection of one replica, as `kube::Client` wants it.
#[derive(Clone)]
pub(crate) struct Network {
    server: envtest::shell::Server,
    router: Router,
    disruptions: Arc<Disruptions>,
    replica: u64,
}

/// What a request is about.
struct Asked {
    method: Method,
    uri: Uri,
    verb: &'static str,
    plural: String,
    /// Whether it counts when it is a write: a lease does not, nor do events of who leads, nor those that are repeated: of objects with
    /// nonsense, and [`SAID_BY_EACH_LEADER`].
    is_counted: bool,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

// === impl Disruptions ===

impl Disruptions {
    pub(crate) fn new(clock: SharedClock, random: Random, options: Options) -> Arc<Self> {
        let (trouble, calm) = (options.faults, options.calm);
        let panics = Panics::new(random.number(), trouble);
        let state = State {
            random,
            trace: Trace::default(),
            faults: BTreeMap::new(),
            trouble,
            calm,
            outage_until: Moment::default(),
            revoked: None,
            stalled: BTreeMap::new(),
            renewed: BTreeMap::new(),
            writes: 0,
            at_once: (Moment::default(), 0),
            broken: None,
        };
        Arc::new(Self { panics, clock, state: Mutex::new(state) })
    }

    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        let now = self.clock.moment();
        self.state.lock().trace.note(now, what);
    }

    pub(crate) fn struck(&self, fault: Fault) {
        *self.state.lock().faults.entry(fault).or_default() += 1;
    }

    /// Nobody reaches the server for a while.
    pub(crate) fn begin_outage(&self, span: Duration) {
        self.note(format_args!("the server is out of reach for {} s", span.as_secs()));
        self.state.lock().outage_until = self.clock.moment() + span;
    }

    /// A permission is taken away for a while.
    pub(crate) fn revoke(&self, verb: &'static str, plural: &'static str, span: Duration) {
        self.note(format_args!("the permission to {verb} {plural} is taken away"));
        self.state.lock().revoked = Some(Revoked { verb, plural, until: self.clock.moment() + span });
    }

    /// From now on nothing goes wrong.
    pub(crate) fn stop_faults(&self) {
        self.panics.stop();
        let mut state = self.state.lock();
        state.trouble = false;
        state.outage_until = Moment::default();
        state.revoked = None;
        state.stalled.clear();
    }

    fn is_to_stall(&self) -> bool {
        !self.state.lock().calm && self.chance(60)
    }

    /// A replica stands still for a while, its clock and everything that it is about to send with it.
    fn begin_stall(&self, replica: u64) {
        let span = STALL + self.span(STALL);
        self.note(format_args!("{replica} stands still for {} s", span.as_secs()));
        self.state.lock().stalled.insert(replica, self.clock.moment() + span);
    }

    /// Waits until this replica goes on.
    pub(crate) async fn stall(&self, replica: u64) {
        let until = self.state.lock().stalled.get(&replica).copied();
        if let Some(until) = until {
            self.clock.sleep(until.since(self.clock.moment())).await;
        }
    }

    /// A replica starts a request. A write of its controllers must not begin after the renew deadline has passed: what has
    /// begun before may arrive later, as with client-go.
    fn started(&self, replica: u64, asked: &Asked) {
        if !is_write(asked) || OF_EVERY_REPLICA.contains(&asked.plural.as_str()) {
            return;
        }
        let now = self.clock.moment();
        let renewed = self.state.lock().renewed.get(&replica).copied();
        if renewed.is_none_or(|renewed| now.since(renewed) >= Network::RENEW) {
            self.breaks(format!("{replica} starts {} {} without the lead", asked.method, asked.uri));
        }
    }

    /// A replica was answered that it has got the lease, with a request that it started at this moment; or released it.
    fn renewed(&self, replica: u64, started: Option<Moment>) {
        let renewed = &mut self.state.lock().renewed;
        match started {
            Some(started) => renewed.insert(replica, started),
            None => renewed.remove(&replica),
        };
    }

    /// Something is wrong that must never be.
    pub(crate) fn breaks(&self, what: String) {
        self.state.lock().broken.get_or_insert(what);
    }

    pub(crate) fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    pub(crate) fn broken(&self) -> Result<(), String> {
        self.state.lock().broken.clone().map_or(Ok(()), Err)
    }

    /// The hash and the length of the story, its end, and what went wrong.
    pub(crate) fn story(&self) -> (u64, u64, String, BTreeMap<Fault, u64>) {
        let state = self.state.lock();
        let mut faults = state.faults.clone();
        faults.extend(self.panics.faults());
        (state.trace.hash(), state.trace.length(), state.trace.last_lines(), faults)
    }

    pub(crate) fn chance(&self, one_in: u64) -> bool {
        let state = self.state.lock();
        state.trouble && state.random.below(one_in) == 0
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.state.lock().random.below(end)
    }

    pub(crate) fn span(&self, longest: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The fault for a request before the server sees it.
    fn of_request(&self, asked: &Asked) -> Option<Fault> {
        let now = self.clock.moment();
        let mut state = self.state.lock();
        state.at_once = if state.at_once.0 == now { (now, state.at_once.1 + 1) } else { (now, 0) };
        if state.at_once.1 > REQUESTS_AT_ONCE {
            state.broken = Some(format!("{REQUESTS_AT_ONCE} requests at one moment, the last for {}", asked.uri));
        }
        if now < state.outage_until {
            return Some(Fault::Outage);
        }
        let revoked = state.revoked.as_ref();
        if revoked.is_some_and(|gone| now < gone.until && asked.verb == gone.verb && asked.plural == gone.plural) {
            return Some(Fault::Revoked);
        }
        if !state.trouble {
            return None;
        }
        match asked.verb {
            "create" | "patch" | "delete" | "update" => Fault::of_write(&state.random),
            "list" if !state.calm && state.random.below(4) == 0 => Some(Fault::StaleList),
            _ if state.random.below(20) == 0 => pick(&state, &[Fault::TooMany, Fault::ErrorBefore, Fault::Lost]),
            _ => None,
        }
    }

    /// The fault for the next bytes of a watch.
    fn of_bytes(&self) -> Option<Fault> {
        let state = self.state.lock();
        if !state.trouble || state.random.below(12) != 0 {
            return None;
        }
        let faults = [Fault::Cut, Fault::Closed, Fault::Expired, Fault::Duplicate, Fault::Slow];
        pick(&state, &faults[..faults.len() - usize::from(state.calm)])
    }

    /// Takes note of a request that was answered, or not.
    fn seen(&self, replica: u64, asked: &Asked, code: u16, fault: Option<Fault>) {
        let is_write = is_write(asked);
        if let Some(fault) = fault {
            self.struck(fault);
        }
        if is_write && (200..300).contains(&code) && asked.is_counted {
            self.state.lock().writes += 1;
        }
        if is_write || fault.is_some() {
            let befell = fault.map(|fault| format!(" ({fault:?})")).unwrap_or_default();
            self.note(format_args!("{replica}: {} {} -> {code}{befell}", asked.method, asked.uri.path()));
        }
    }
}

fn is_write(asked: &Asked) -> bool {
    !matches!(asked.verb, "get" | "list" | "watch")
}

fn pick(state: &State, faults: &[Fault]) -> Option<Fault> {
    faults.get(usize::try_from(state.random.below(faults.len() as u64)).ok()?).copied()
}

// === impl Network ===

impl Network {
    /// Namespace and name of the lease of the replicas.
    pub(crate) const LEASE: (&str, &str) = ("default", "simulated");
    const LEASE_PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/simulated";

    /// How long a leader may start writes after it has renewed the lease.
    pub(crate) const RENEW: Duration = Duration::from_secs(80);

    /// The name of a replica as the lease knows it.
    pub(crate) fn identity(replica: u64) -> String {
        format!("replica-{replica}")
    }

    /// A way to the server.
    pub(crate) fn new(server: &envtest::shell::Server, disruptions: Arc<Disruptions>, replica: u64) -> Self {
        Self { server: server.clone(), router: server.router(), disruptions, replica }
    }

    async fn carry(self, request: Request<KubeBody>) -> Result<Response<Body>, BoxError> {
        let (mut parts, body) = request.into_parts();
        let mut asked = Asked::of(&parts.method, &parts.uri);
        let mut body = Body::new(body);
        if asked.plural == "events" && asked.verb == "create" {
            let bytes = to_bytes(body, usize::MAX).await?;
            let event: Value = serde_json::from_slice(&bytes)?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let [name, reason, about] = [&event["metadata"]["name"], &event["reason"], &event["note"]].map(text);
            asked.is_counted = is_counted_event(&name) && reason != SAID_BY_EACH_LEADER;
            self.disruptions.note(format_args!("{}: event {name}: {reason}: {about}", self.replica));
            body = bytes.into();
        }
        let started = self.disruptions.clock.moment();
        if self.disruptions.chance(4) {
            let delay = self.disruptions.span(DELAY);
            self.disruptions.clock.sleep(delay).await;
        }
        let stalls = is_write(&asked) && asked.plural != "leases" && self.disruptions.is_to_stall();
        if stalls {
            self.disruptions.begin_stall(self.replica);
        }
        self.disruptions.stall(self.replica).await;
        if stalls && self.another_leads() {
            self.disruptions.struck(Fault::Deposed);
            self.disruptions.note(format_args!("{}: another leads meanwhile", self.replica));
        }
        let mut fault = self.disruptions.of_request(&asked);
        let refusal = match fault {
            Some(Fault::Outage) => {
                self.disruptions.seen(self.replica, &asked, 0, fault);
                return Err(connection_lost());
            }
            Some(Fault::Revoked) => Some(failure(403, "Forbidden", "the permission was taken away")),
            Some(Fault::Conflict) => Some(failure(409, "Conflict", "the object has been modified")),
            Some(Fault::Refused) => Some(failure(403, "Forbidden", "admission webhook denied the request")),
            Some(Fault::ErrorBefore) => Some(failure(500, "InternalError", "before the commit")),
            Some(Fault::TooMany) => {
                let refusal = failure(429, "TooManyRequests", "too many requests");
                Some(Answer { retry_after: Some(Duration::from_secs(2)), ..refusal })
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            self.disruptions.seen(self.replica, &asked, refusal.code, fault);
            return respond(refusal);
        }
        if fault == Some(Fault::StaleList) {
            let newest = self.server.with_core(|core| core.store.revision());
            match stale(&parts.uri, newest.saturating_sub(1 + self.disruptions.below(LAG)).max(1)) {
                Some(uri) => parts.uri = uri,
                None => fault = None,
            }
        }
        let response = self.router.clone().oneshot(Request::from_parts(parts, body)).await?;
        let code = response.status().as_u16();
        // So old a state may be unknown to any server.
        fault = fault.filter(|fault| *fault != Fault::StaleList || code < 300);
        self.disruptions.seen(self.replica, &asked, code, fault);
        match fault {
            Some(Fault::ErrorAfter) => respond(failure(504, "Timeout", "after the commit")),
            Some(Fault::Lost) if self.disruptions.chance(2) => Err(connection_lost()),
            // The client has to give up by itself.
            Some(Fault::Lost) => std::future::pending().await,
            _ if is_write(&asked) && asked.plural == "leases" && code < 300 => {
                let holds = self.holder() == Some(Self::identity(self.replica));
                self.disruptions.renewed(self.replica, holds.then_some(started));
                Ok(response)
            }
            _ if asked.verb == "watch" && code < 300 => Ok(response.map(|body| self.through(body))),
            _ => Ok(response),
        }
    }

    /// Whether the lease is in the name of another replica.
    fn another_leads(&self) -> bool {
        self.holder().is_some_and(|holder| holder != Self::identity(self.replica))
    }

    /// In whose name the lease is.
    fn holder(&self) -> Option<String> {
        let request = ApiRequest::new(Method::GET, Self::LEASE_PATH, String::new());
        let Outcome::Done(lease) = self.server.with_core(|core| core.handle(&request)) else { return None };
        let lease: Value = serde_json::from_slice(&lease.body).ok()?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    }

    /// A watch as it comes through.
    fn through(self, body: Body) -> Body {
        let state = Some((self, body.into_data_stream()));
        Body::from_stream(stream::unfold(state, |state| async move {
            let (network, mut bytes) = state?;
            let (piece, goes_on) = next(&network.disruptions, &mut bytes).await?;
            network.disruptions.stall(network.replica).await;
            Some((piece, goes_on.then_some((network, bytes))))
        }))
    }
}

/// The next bytes of a watch after their fault, and whether more can follow.
async fn next(disruptions: &Disruptions, bytes: &mut BodyDataStream) -> Option<(io::Result<Bytes>, bool)> {
    let piece = match bytes.next().await? {
        Ok(piece) => piece,
        Err(error) => return Some((Err(io::Error::other(error)), false)),
    };
    let fault = disruptions.of_bytes();
    if let Some(fault) = fault {
        disruptions.struck(fault);
    }
    match fault {
        Some(Fault::Cut) => {
            let length = usize::try_from(disruptions.below(piece.len() as u64)).unwrap_or_default();
            Some((Ok(piece.slice(..length)), false))
        }
        Some(Fault::Closed) => None,
        Some(Fault::Expired) => {
            let status = failure(410, "Expired", "too old resource version").body;
            Some((Ok(Bytes::from(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n"))), false))
        }
        Some(Fault::Duplicate) => Some((Ok([&piece[..], &piece[..]].concat().into()), true)),
        Some(Fault::Slow) => {
            let silence = disruptions.span(SILENCE);
            disruptions.clock.sleep(silence).await;
            Some((Ok(piece), true))
        }
        _ => Some((Ok(piece), true)),
    }
}

impl Service<Request<KubeBody>> for Network {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<KubeBody>) -> Self::Future {
        self.disruptions.started(self.replica, &Asked::of(request.method(), request.uri()));
        self.clone().carry(request).boxed()
    }
}

// === impl Asked ===

impl Asked {
    fn of(method: &Method, uri: &Uri) -> Self {
        let segments: Vec<&str> = uri.path().split('/').skip(1).collect();
        let rest = segments.get(if segments.first() == Some(&"api") { 2 } else { 3 }..).unwrap_or_default();
        let rest = if rest.len() > 2 && rest.first() == Some(&"namespaces") { &rest[2..] } else { rest };
        let verb = match method.as_str() {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ if rest.len() > 1 => "get",
            _ if uri.query().is_some_and(|query| query.contains("watch=true")) => "watch",
            _ => "list",
        };
        let plural = rest.first().copied().unwrap_or_default().to_owned();
        let is_counted = match plural.as_str() {
            "leases" => false,
            "events" => rest.get(1).is_none_or(|name| is_counted_event(name)),
            _ => true,
        };
        Self { method: method.clone(), uri: uri.clone(), verb, plural, is_counted }
    }
}

/// Whether the event of this name counts as a write: the name begins with that of the object.
fn is_counted_event(name: &str) -> bool {
    let of_the_lease = name.split_once('.').is_some_and(|(lease, _)| lease == Network::LEASE.1);
    !name.starts_with(ODD) && !of_the_lease
}

/// A list of the past; none for what is no first page.
fn stale(uri: &Uri, revision: u64) -> Option<Uri> {
    let query = uri.query().filter(|query| !query.contains("continue="))?;
    format!("{}?{query}&resourceVersion={revision}&resourceVersionMatch=Exact", uri.path()).parse().ok()
}

fn connection_lost() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke").into()
}

fn respond(answer: Answer) -> Result<Response<Body>, BoxError> {
    let mut response = Response::builder().status(answer.code).header(header::CONTENT_TYPE, "application/json");
    if let Some(span) = answer.retry_after {
        response = response.header(header::RETRY_AFTER, span.as_secs());
    }
    Ok(response.body(Body::from(answer.body))?)
}
