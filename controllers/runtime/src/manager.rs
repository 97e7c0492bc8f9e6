//! Runs a [`Core`]: tasks around its watches and controllers, leader election, and the endpoints.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{Router, routing::get};
use kube::Client;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    api::Api,
    clock::{SharedClock, SystemClock},
    controller::{Attempt, Worker},
    core::Core,
    election::stand,
    error::ReconcileError,
    follow::follow,
    health::Health,
    lease::Candidacy,
    metrics::Audience,
    outcome::Outcome,
    plan::Carrying,
    recorder::{EventQueue, write_events},
};

/// How a manager runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Writes are made in this name.
    pub field_manager: &'static str,
    /// Requests per second; zero or less means no limit.
    pub requests_per_second: f32,
    /// Requests that may come at once.
    pub requests_burst: u32,
    /// Whether and how to stand for election; none leads at once.
    pub candidacy: Option<Candidacy>,
    /// Where the metrics are served; none serves them nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where health and readiness are served; none serves them nowhere.
    pub health: Option<SocketAddr>,
    /// The host's name, for events.
    pub host: String,
}

/// Why a manager cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An address is taken or not ours.
    #[error("cannot listen on {address} for {purpose}: {source}; choose another address with {flag}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// `metrics` or `health`.
        purpose: &'static str,
        /// The flag that sets it.
        flag: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// See the module.
pub struct Manager {
    core: Arc<Core>,
    api: Api,
    clock: SharedClock,
    health: Health,
    settings: Settings,
    told: EventQueue,
    leading: watch::Sender<bool>,
}

impl Manager {
    /// A manager over everything that `core` has wired. `told` is the other end of the recorder that the core
    /// was given as its event sink.
    pub fn new(core: Core, client: Client, told: EventQueue, settings: Settings) -> Self {
        Self::timed_by(SystemClock::shared(), core, client, told, settings)
    }

    /// A manager whose leases, waits and timeouts follow another clock than the operating system's: for simulations,
    /// where nobody else keeps real time either.
    pub fn timed_by(clock: SharedClock, core: Core, client: Client, told: EventQueue, settings: Settings) -> Self {
        let limit = (settings.requests_per_second, settings.requests_burst);
        let api = Api::new(client, Arc::clone(&clock), core.metrics().clone(), settings.field_manager, limit);
        let (health, leading) = (Health::default(), watch::Sender::new(false));
        Self { core: Arc::new(core), api, clock, health, settings, told, leading }
    }

    /// Tells the metrics of requests the host and port in the API server's URL; kube's client keeps it to itself.
    pub fn at_host(mut self, host: &str) -> Self {
        self.api = self.api.at_host(host);
        self
    }

    /// The checks behind health and readiness.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// The way to the API server, for parts of a program that are no controllers.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Shows whether this process leads.
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.subscribe()
    }

    /// What is wired.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Runs until `stop`. Watches, metrics and health run on every replica, controllers on the leader alone.
    /// Losing the lease stops the controllers cleanly and stands for election again.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let metrics = listen(self.settings.metrics, "metrics", "--metrics-addr").await?;
        let health = listen(self.settings.health, "health", "--health-probe-addr").await?;
        let mut tasks = JoinSet::new();
        if let Some(listener) = metrics {
            tasks.spawn(serve(listener, metrics_router(&self.core), stop.clone()));
        }
        if let Some(listener) = health {
            tasks.spawn(serve(listener, self.health.router(), stop.clone()));
        }
        let random = self.core.random();
        for watch in self.core.watches() {
            let surroundings = (Arc::clone(&self.clock), random.clone(), self.core.metrics().clone());
            let (clock, random, metrics) = surroundings;
            tasks.spawn(follow(Arc::clone(watch), self.api.clone(), clock, random, metrics, stop.clone()));
        }
        tasks.spawn(write_events(self.told, self.api.clone(), random.clone(), self.settings.host, stop.clone()));
        let (leading, idle) = (self.leading.subscribe(), CancellationToken::new());
        if let Some(candidacy) = self.settings.candidacy {
            let (api, clock) = (self.api.clone(), Arc::clone(&self.clock));
            let metrics = self.core.metrics().clone();
            let ends = (stop.clone(), idle.clone());
            tasks.spawn(stand(candidacy, api, clock, random.clone(), metrics, self.leading, ends));
        } else {
            self.leading.send_replace(true);
            let stop = stop.clone();
            tasks.spawn(async move {
                stop.cancelled().await;
                drop(self.leading);
            });
        }
        let (core, api, clock) = (Arc::clone(&self.core), self.api.clone(), Arc::clone(&self.clock));
        tasks.spawn(async move {
            // Also when a worker panics: a lease that is never given back would be waited for.
            let _idle = idle.drop_guard();
            lead(core, api, clock, leading, stop).await;
        });
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a task of the manager ended badly");
            }
        }
        Ok(())
    }
}

/// Runs the controllers while this process leads.
async fn lead(
    core: Arc<Core>,
    api: Api,
    clock: SharedClock,
    mut leading: watch::Receiver<bool>,
    stop: CancellationToken,
) {
    loop {
        let elected = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            elected = leading.wait_for(|leads| *leads) => elected.is_ok(),
        };
        if !elected {
            return;
        }
        let term = stop.child_token();
        let mut workers = JoinSet::new();
        for worker in core.workers() {
            for _ in 0..worker.spec().concurrency.max(1) {
                workers.spawn(work(Arc::clone(worker), api.clone(), Arc::clone(&clock), term.clone()));
            }
        }
        tokio::select! { biased; () = stop.cancelled() => {}, _ = leading.wait_for(|leads| !*leads) => {} }
        term.cancel();
        while workers.join_next().await.is_some() {}
    }
}

/// One worker: takes keys until the term ends. A write that was begun is finished first.
async fn work(worker: Arc<Worker>, api: Api, clock: SharedClock, term: CancellationToken) {
    const LOOK_AGAIN: Duration = Duration::from_millis(50);
    while !worker.ready() {
        tokio::select! { biased; () = term.cancelled() => return, () = clock.sleep(LOOK_AGAIN) => {} }
    }
    loop {
        let attempt = tokio::select! { biased; () = term.cancelled() => return, attempt = worker.taken() => attempt };
        let written = match worker.decide(&attempt) {
            Err(error) => Err(error),
            Ok(outcome) => carry_out(&worker, &attempt, &api, outcome, &term).await,
        };
        worker.settle(attempt, written);
    }
}

async fn carry_out(
    worker: &Worker,
    attempt: &Attempt,
    api: &Api,
    outcome: Outcome,
    term: &CancellationToken,
) -> Result<Option<Duration>, ReconcileError> {
    let mut plan = Carrying::of(outcome.plan);
    while let Some(write) = plan.next_write() {
        if term.is_cancelled() {
            // The next leader decides anew; should that be this process, it begins with this key.
            return Ok(Some(Duration::ZERO));
        }
        tracing::debug!(controller = worker.spec().name, %write, "writing");
        let span = worker.begin_write(attempt);
        let result = api.write_because(&write, span.map(|span| span.context())).await;
        worker.end_write(span, &write, result.as_ref().err());
        plan.written(&write, worker.written(&write, result));
    }
    worker.tell(outcome.events);
    plan.end().map(|()| outcome.requeue)
}

fn metrics_router(core: &Arc<Core>) -> Router {
    let page = |audiences: &'static [Audience]| {
        let core = Arc::clone(core);
        get(async move || {
            core.refresh_metrics();
            ([("content-type", "text/plain; version=0.0.4; charset=utf-8")], core.metrics().text(audiences))
        })
    };
    Router::new()
        .route("/metrics", page(&[Audience::Runtime]))
        .route("/internal-metrics", page(&[Audience::Internal]))
        .route("/external-metrics", page(&[Audience::External]))
        .route("/all-metrics", page(&[Audience::Runtime, Audience::Internal, Audience::External]))
}

async fn listen(
    address: Option<SocketAddr>,
    purpose: &'static str,
    flag: &'static str,
) -> Result<Option<TcpListener>, RunError> {
    let Some(address) = address else { return Ok(None) };
    let mut bound = TcpListener::bind(address).await;
    // Every interface is meant, also on machines without IPv6.
    if bound.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AddrInUse)
        && address.ip() == Ipv6Addr::UNSPECIFIED
    {
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
    }
    bound.map(Some).map_err(|source| RunError::Listen { address, purpose, flag, source })
}

async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    // Who only reads health and metrics loses nothing when the process goes.
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned()).into_future();
    tokio::select! { biased; () = stop.cancelled() => {}, _ = served => {} }
}
