//! Runs a [`Core`]: tasks around its watches and controllers, leader election, and the endpoints.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use futures::{FutureExt, future::BoxFuture};
use koord_listen::{BindError, Limits, Server, bind};
use kube::Client;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    api::Api,
    clock::{SharedClock, SystemClock},
    controller::{Attempt, Worker},
    core::Core,
    election::Candidate,
    events::EventGroup,
    follow::Follower,
    health::Health,
    lease::{LeaderElectionConfig, Leadership},
    metrics::Audience,
    outcome::Outcome,
    panics::{Place, Task},
    plan::Execution,
    recorder::{EventQueue, EventWriter},
    tasks::{TaskError, Tasks},
};

/// The Lease is read and written with a limit of its own, requests per second and at once: it must not wait for others.
const LEASE_LIMIT: (f32, u32) = (5.0, 10);

/// How a manager runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Requests per second; zero or less means no limit.
    pub requests_per_second: f32,
    /// Requests that may come at once.
    pub requests_burst: u32,
    /// How to take part in leader election; none leads at once.
    pub leader_election: Option<LeaderElectionConfig>,
    /// Where the metrics are served; none serves them nowhere.
    pub metrics: Option<ListenAddress>,
    /// Where health and readiness are served; none serves them nowhere. The address of the metrics serves both.
    pub health: Option<ListenAddress>,
    /// The host's name, for events.
    pub host: String,
}

/// Where something is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address.
    pub address: SocketAddr,
    /// What sets it, such as the flag `--metrics-addr`: an error says where to choose another one.
    pub set_by: &'static str,
}

/// Why a manager cannot run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An address is taken or not ours.
    #[error("{source} ({purpose}); choose another address with {set_by}")]
    Listen {
        /// `metrics` or `health`.
        purpose: &'static str,
        /// What sets it.
        set_by: &'static str,
        /// The address, and what the operating system said.
        source: BindError,
    },
    /// A task cannot go on, and so the program cannot.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Runs a [`Core`].
pub struct Manager {
    core: Arc<Core>,
    api: Api,
    clock: SharedClock,
    health: Health,
    settings: Settings,
    events: EventQueue,
    leading: Arc<watch::Sender<bool>>,
    leadership: Leadership,
    tasks: Tasks,
    /// Tasks that run on the leader alone.
    leader_tasks: Vec<OwnTask>,
    /// Tasks that run on every replica.
    replica_tasks: Vec<OwnTask>,
    /// What is served beside the metrics.
    routes: Router,
    /// What `/metrics` shows.
    metrics_page: &'static [Audience],
}

/// What a program runs beside its controllers: what the function returns that adds them. `()` is nothing.
pub trait Runnable {
    /// What holds its ports.
    type Open;
    /// Why it cannot run.
    type Error: std::error::Error + Send + Sync + 'static;
    /// The variables of the environment that it reads, with what each says, for `--help`.
    const VARIABLES: &'static [(&'static str, &'static str)] = &[];

    /// Takes its ports, and lets `core` watch what it depends on. The names of its objects are by default those of an installation
    /// of this program in this namespace.
    fn open(self, core: &mut Core, program: &str, namespace: &str) -> Result<Self::Open, Self::Error>;

    /// Gives its tasks to the manager.
    fn run_in(open: Self::Open, manager: &mut Manager) -> Result<(), Self::Error>;
}

impl Runnable for () {
    type Open = ();
    type Error = std::convert::Infallible;

    fn open(self, _: &mut Core, _: &str, _: &str) -> Result<(), Self::Error> {
        Ok(())
    }

    fn run_in((): (), _: &mut Manager) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A task of the program itself.
struct OwnTask {
    task: Task<'static>,
    start: Arc<dyn Fn(Api, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Manager {
    /// A manager over everything that `core` has wired. `events` is the other end of the recorder that the core
    /// was given as its event sink.
    pub fn new(core: Core, client: Client, events: EventQueue, settings: Settings) -> Self {
        Self::timed_by(SystemClock::shared(), core, client, events, settings)
    }

    /// Writes events through this group, instead of `events.k8s.io`.
    pub fn write_events_through(&mut self, group: EventGroup) {
        self.events.set_group(group);
    }

    /// A manager whose leases, waits and timeouts follow another clock than the operating system's: for simulations,
    /// where nobody else keeps real time either.
    pub fn timed_by(clock: SharedClock, core: Core, client: Client, events: EventQueue, settings: Settings) -> Self {
        let limit = (settings.requests_per_second, settings.requests_burst);
        let api = Api::new(client, Arc::clone(&clock), core.metrics().requests(), core.field_manager(), limit);
        let tasks = Tasks::new(core.guard().clone(), Arc::clone(&clock), core.random().clone());
        let health = Health::measured(core.metrics());
        let is_elected = settings.leader_election.is_some();
        let leadership = if is_elected { Leadership::of_candidate() } else { Leadership::without_election() };
        let (core, leading) = (Arc::new(core), Arc::new(watch::Sender::new(false)));
        let ready = Arc::clone(&core);
        health.ready("caches", move || ready.readiness());
        let live = (Arc::clone(&core), tasks.clone());
        health.live("tasks", move || {
            let (core, tasks) = &live;
            tasks.alive().map_err(|error| error.to_string()).and_then(|()| core.liveness())
        });
        Self {
            core,
            api,
            clock,
            health,
            settings,
            events,
            leading,
            tasks,
            leadership,
            leader_tasks: Vec::new(),
            replica_tasks: Vec::new(),
            routes: Router::new(),
            metrics_page: &[Audience::Runtime],
        }
    }

    /// Names the API server in the metrics of requests by the host and port in its URL.
    pub fn at_host(mut self, host: &str) -> Self {
        self.api = self.api.at_host(host);
        self
    }

    /// Runs this, too, while this process leads: until the token is cancelled, and again in the next term. It writes through
    /// the given way to the API server, which starts no write without the lead. The Lease is released after it has ended.
    pub fn while_leading<F>(
        &mut self,
        name: &'static str,
        start: impl Fn(Api, CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.leader_tasks.push(OwnTask::new(Task("leader task", name), start));
    }

    /// Runs this, too, on every replica, until the token is cancelled. It starts again when it panics, so `start` begins with
    /// whatever the task before left behind.
    pub fn on_every_replica<F>(
        &mut self,
        name: &'static str,
        start: impl Fn(Api, CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.replica_tasks.push(OwnTask::new(Task(name, ""), start));
    }

    /// The checks behind health and readiness.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Serves these routes beside the metrics, too.
    pub fn serve_also(&mut self, routes: Router) {
        self.routes = std::mem::take(&mut self.routes).merge(routes);
    }

    /// Shows the metrics of all audiences at `/metrics`, as agents do that have one page for scrapers.
    pub fn show_all_metrics_at_once(&mut self) {
        self.metrics_page = &ALL_AUDIENCES;
    }

    /// Metrics, health and what [`Manager::serve_also`] was given, to be served somewhere else, too.
    pub fn endpoints(&self) -> Router {
        metrics_router(&self.core, self.metrics_page).merge(self.health.router()).merge(self.routes.clone())
    }

    /// The way to the API server, for parts of a program that are no controllers.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The same for what only the leader may write: effects of controllers, which may still wait when the lead is over.
    pub fn leader_api(&self) -> Api {
        self.api.clone().as_leader(self.leadership.clone())
    }

    /// Shows whether this process leads.
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.subscribe()
    }

    /// Supervises tasks: those of the manager, and others of the program.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// What is wired.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Runs until `stop`. Watches, metrics and health run on every replica, controllers on the leader alone.
    /// Losing the lease stops the controllers cleanly and runs for election again. A task that panics starts again; one
    /// that cannot go on is an error that ends all others.
    // A future in a box is compiled once, here, and not wherever it is awaited.
    pub fn run(self, stop: CancellationToken) -> BoxFuture<'static, Result<(), RunError>> {
        Box::pin(self.run_all(stop))
    }

    async fn run_all(self, stop: CancellationToken) -> Result<(), RunError> {
        let (metrics, health) = (self.settings.metrics, self.settings.health);
        let is_shared = metrics.is_some() && metrics == health;
        let metrics = listen(metrics, if is_shared { "metrics and health" } else { "metrics" })?;
        let health = listen(health.filter(|_| !is_shared), "health")?;
        let stop = stop.child_token();
        let mut tasks = JoinSet::new();
        self.spawn_watches(&mut tasks, &stop);
        let mut metrics_router = metrics_router(&self.core, self.metrics_page).merge(self.routes);
        if is_shared {
            metrics_router = metrics_router.merge(self.health.router());
        }
        let endpoints = [
            metrics.map(|listener| (Task("metrics server", ""), listener, metrics_router)),
            health.map(|listener| (Task("health server", ""), listener, self.health.router())),
        ];
        for (task, listener, router) in endpoints.into_iter().flatten() {
            let (listener, end) = (Arc::new(listener), stop.clone());
            let run = move || serve(Arc::clone(&listener), router.clone(), end.clone());
            spawn(&mut tasks, &self.tasks, task, &stop, run);
        }
        for OwnTask { task, start } in self.replica_tasks {
            let (api, end) = (self.api.clone(), stop.clone());
            spawn(&mut tasks, &self.tasks, task, &stop, move || start(api.clone(), end.clone()));
        }
        let (random, guard) = (self.core.random().clone(), self.core.guard().clone());
        let queue = Arc::new(tokio::sync::Mutex::new(self.events));
        let (api, host) = (self.api.clone(), self.settings.host);
        let writer = EventWriter {
            queue,
            api,
            clock: Arc::clone(&self.clock),
            random: random.clone(),
            host,
            guard: guard.clone(),
        };
        let run = {
            let stop = stop.clone();
            move || writer.clone().run(stop.clone())
        };
        spawn(&mut tasks, &self.tasks, Task("events", ""), &stop, run);
        let (leading, idle) = (self.leading.subscribe(), CancellationToken::new());
        let leadership = self.leadership;
        if let Some(config) = self.settings.leader_election {
            let candidate = Candidate {
                config,
                api: self.api.clone().with_own_limit(LEASE_LIMIT),
                clock: Arc::clone(&self.clock),
                random,
                metrics: self.core.metrics().clone(),
                guard,
                leading: self.leading,
                leadership: leadership.clone(),
                events: Arc::clone(self.core.events()),
                component: self.core.field_manager(),
            };
            let (end, idle) = (stop.clone(), idle.clone());
            let run = move || candidate.clone().run(end.clone(), idle.clone());
            spawn(&mut tasks, &self.tasks, Task("leader election", ""), &stop, run);
        } else {
            self.leading.send_replace(true);
            let (stop, leading) = (stop.clone(), self.leading);
            tasks.spawn(async move {
                stop.cancelled().await;
                drop(leading);
                Ok(())
            });
        }
        let (core, api, end) = (Arc::clone(&self.core), self.api.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! { biased; () = end.cancelled() => {}, () = retry_after_outages(&core, &api) => {} }
            Ok(())
        });
        let leader = Leader {
            core: self.core,
            api: self.api.as_leader(leadership),
            clock: self.clock,
            tasks: self.tasks,
            own_tasks: self.leader_tasks,
        };
        let end = stop.clone();
        tasks.spawn(async move {
            // However the workers end: a lease that is not released would be waited for.
            let _idle = idle.drop_guard();
            leader.lead(leading, end).await
        });
        let mut result = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let error = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(error) => TaskError::Ended { task: error.to_string() },
            };
            tracing::error!(%error, "the program cannot go on");
            stop.cancel();
            result = result.and(Err(RunError::Task(error)));
        }
        result
    }

    fn spawn_watches(&self, tasks: &mut JoinSet<Result<(), TaskError>>, stop: &CancellationToken) {
        for watch in self.core.watches() {
            let again = Arc::new(Notify::new());
            let interrupt = Arc::clone(&again);
            watch.set_interrupt(move || interrupt.notify_waiters());
            let follower = Follower {
                watch: Arc::clone(watch),
                api: self.api.clone(),
                clock: Arc::clone(&self.clock),
                random: self.core.random().clone(),
                metrics: self.core.metrics().clone(),
                guard: self.core.guard().clone(),
                failures: Arc::clone(self.core.failures()),
                again,
            };
            let (end, mut is_first) = (stop.clone(), true);
            let run = move || {
                if !std::mem::take(&mut is_first) {
                    // What was under way is unknown; a new list brings cache and server together.
                    follower.watch.reflector.lock().reset();
                }
                follower.clone().run(end.clone())
            };
            spawn(tasks, &self.tasks, watch.task(), stop, run);
        }
    }
}

/// Has what failed during an outage of the API server tried again as soon as that is over, instead of after the delays that have grown.
async fn retry_after_outages(core: &Core, api: &Api) {
    loop {
        api.outage().over().await;
        core.workers().iter().for_each(|worker| worker.retry_failed());
    }
}

/// Runs a supervised task beside the others.
fn spawn<F: Future<Output = ()> + Send + 'static>(
    tasks: &mut JoinSet<Result<(), TaskError>>,
    supervisor: &Tasks,
    task: Task<'static>,
    stop: &CancellationToken,
    start: impl FnMut() -> F + Send + 'static,
) {
    let (supervisor, stop) = (supervisor.clone(), stop.clone());
    tasks.spawn(async move { supervisor.supervise(task, &stop, start).await });
}

// === impl OwnTask ===

impl OwnTask {
    fn new<F: Future<Output = ()> + Send + 'static>(
        task: Task<'static>,
        start: impl Fn(Api, CancellationToken) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { task, start: Arc::new(move |api, end| start(api, end).boxed()) }
    }
}

/// What runs on the leader alone.
struct Leader {
    core: Arc<Core>,
    api: Api,
    clock: SharedClock,
    tasks: Tasks,
    own_tasks: Vec<OwnTask>,
}

impl Leader {
    /// Runs the controllers while this process leads.
    async fn lead(self, mut leading: watch::Receiver<bool>, stop: CancellationToken) -> Result<(), TaskError> {
        loop {
            let elected = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                elected = leading.wait_for(|leads| *leads) => elected.is_ok(),
            };
            if !elected {
                // The sender lives as long as leader election, which only `stop` ends.
                return Ok(());
            }
            let term = stop.child_token();
            let mut workers = JoinSet::new();
            for worker in self.core.workers() {
                for _ in 0..worker.spec().concurrency.max(1) {
                    let (worker, api) = (Arc::clone(worker), self.api.clone());
                    let (clock, end, task) = (Arc::clone(&self.clock), term.clone(), worker.task());
                    let run = move || work(Arc::clone(&worker), api.clone(), Arc::clone(&clock), end.clone());
                    spawn(&mut workers, &self.tasks, task, &term, run);
                }
            }
            for effects in self.core.effects() {
                let (effects, guard) = (Arc::clone(effects), self.core.guard().clone());
                let (clock, end, task) = (Arc::clone(&self.clock), term.clone(), Task("effects", effects.name()));
                let run = move || Arc::clone(&effects).run(guard.clone(), Arc::clone(&clock), end.clone());
                spawn(&mut workers, &self.tasks, task, &term, run);
            }
            for OwnTask { task, start } in &self.own_tasks {
                let (start, api, end) = (Arc::clone(start), self.api.clone(), term.clone());
                spawn(&mut workers, &self.tasks, *task, &term, move || start(api.clone(), end.clone()));
            }
            let failed = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                failed = first_error_or_never(&mut workers) => Some(failed),
                _ = leading.wait_for(|leads| !*leads) => None,
            };
            term.cancel();
            let failed = failed.or(first_error(&mut workers).await);
            failed.map_or(Ok(()), Err)?;
        }
    }
}

/// The error of the first task that cannot go on; none when all have ended well.
async fn first_error(tasks: &mut JoinSet<Result<(), TaskError>>) -> Option<TaskError> {
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Some(error),
            Err(error) => return Some(TaskError::Ended { task: error.to_string() }),
        }
    }
    None
}

/// The error of the first task that cannot go on.
async fn first_error_or_never(tasks: &mut JoinSet<Result<(), TaskError>>) -> TaskError {
    match first_error(tasks).await {
        Some(error) => error,
        None => std::future::pending().await,
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
        let outcome = match worker.decide(&attempt) {
            Ok(outcome) => outcome,
            Err(error) => {
                worker.settle(attempt, Err(error));
                continue;
            }
        };
        let executed = execute(&worker, &attempt, &api, outcome, &term);
        match worker.guard().catch_async(Place::Execution, worker.task(), executed).await {
            Ok(Some(execution)) => worker.finish(attempt, execution),
            // The next leader decides anew; should that be this process, it begins with this key.
            Ok(None) => worker.settle(attempt, Ok(Some(Duration::ZERO))),
            Err(panicked) => worker.abandon(attempt, &panicked),
        }
    }
}

/// Executes a plan; none when the term ended before.
async fn execute(
    worker: &Worker,
    attempt: &Attempt,
    api: &Api,
    outcome: Outcome,
    term: &CancellationToken,
) -> Option<Execution> {
    let mut execution = Execution::of(outcome);
    while let Some(write) = execution.next_write() {
        if term.is_cancelled() {
            return None;
        }
        worker.guard().inject(Place::Execution);
        tracing::debug!(controller = worker.spec().name, %write, "writing");
        let span = worker.begin_write(attempt);
        let result = api.write_because(&write, span.map(|span| span.context())).await;
        worker.end_write(span, &write, result.as_ref().err());
        worker.written(attempt, &mut execution, &write, result);
    }
    Some(execution)
}

const ALL_AUDIENCES: [Audience; 3] = [Audience::Runtime, Audience::Internal, Audience::External];

fn metrics_router(core: &Arc<Core>, metrics_page: &'static [Audience]) -> Router {
    let page = |audiences: &'static [Audience]| {
        let core = Arc::clone(core);
        get(async move || {
            core.refresh_metrics();
            ([("content-type", "text/plain; version=0.0.4; charset=utf-8")], core.metrics().text(audiences))
        })
    };
    Router::new()
        .route("/metrics", page(metrics_page))
        .route("/internal-metrics", page(&[Audience::Internal]))
        .route("/external-metrics", page(&[Audience::External]))
        .route("/metrics/slis", page(&[Audience::Slis]))
        .route("/all-metrics", page(&ALL_AUDIENCES))
}

fn listen(at: Option<ListenAddress>, purpose: &'static str) -> Result<Option<TcpListener>, RunError> {
    let Some(ListenAddress { address, set_by }) = at else { return Ok(None) };
    bind(address).map(Some).map_err(|source| RunError::Listen { purpose, set_by, source })
}

async fn serve(listener: Arc<TcpListener>, router: Router, stop: CancellationToken) {
    Server::new(Limits::small()).serve(listener, None, router, stop.cancelled_owned()).await;
}
