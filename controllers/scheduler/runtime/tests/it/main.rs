//! The scheduler on the embedded API server, in one process and in paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::{sync::Arc, time::Duration};

use envtest::{
    environment::{Environment, SeededEnvironment, TimedEnvironment},
    kinds,
    request::ApiRequest,
    server::ApiServer,
    shell::{Parts, Server},
    store::HistoryLimits,
};
use http::Method;
use jiff::Timestamp;
use koord_runtime::{
    Core,
    clock::{ScaledClock, SharedClock},
    lease::LeaderElectionConfig,
    manager::{Manager, Settings},
    metrics::Metrics,
    panics::Injector,
    random::Random,
    recorder::Recorder,
};
use koord_scheduler_assembly::default_profile;
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_framework::Profile;
use koord_scheduler_runtime::{
    EngineReader, Measures, Scheduler, SyncBarrier, Transformers, explain, feed::Feed, install,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::{ServiceExt, service_fn};

mod absent;
mod agreement;
mod audit;
mod barrier;
mod begins;
mod beside;
mod bindings;
mod claims;
mod device_plugins;
mod elsewhere;
mod events;
mod explanations;
mod ignored;
mod leading;
mod memory;
mod metrics;
mod outage;
mod quotas;
mod reader;
mod rejections;
mod resize;
mod volumes;
mod workloads;

// === the stage ===

struct Stage {
    server: Server,
    clock: SharedClock,
    /// Whether ScheduleExplanations are answered, and written for pods that wait.
    explains: Option<bool>,
    /// What is made of pods.
    transformers: Transformers,
    /// Panics that are injected.
    panics: Option<Injector>,
    /// Requests per second, and at once; none without a limit.
    limit: (f32, u32),
}

const PODS: &str = "/api/v1/namespaces/default/pods";

impl Stage {
    fn new() -> Self {
        Self::of(Box::new(SeededEnvironment::new(1, Timestamp::UNIX_EPOCH)))
    }

    fn of(environment: Box<dyn Environment>) -> Self {
        let mut core = ApiServer::empty(environment, HistoryLimits::default());
        kinds::install(&mut core);
        let stage = Self {
            server: Server::new(core, Parts::default()),
            clock: ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0),
            explains: None,
            transformers: Transformers::default(),
            panics: None,
            limit: (0.0, 0),
        };
        for name in ["default", "kube-system"] {
            stage.send(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        stage
    }

    fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        match self.server.with_core(|core| core.handle(&ApiRequest::json(method, path, body))) {
            envtest::server::Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn add_node(&self, name: &str, cpu: &str) {
        let status = json!({"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}});
        self.send(Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": name}, "status": status}));
        // A new node is not ready until its kubelet says so; here it is.
        self.send(Method::PATCH, &format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}}));
    }

    fn add_pod(&self, name: &str, cpu: &str) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        self.send(Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec}));
    }

    /// The node of a pod; otherwise why it has none.
    fn place(&self, name: &str) -> String {
        let pod = self.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null);
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let unscheduled =
            conditions.iter().find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
        match (pod["spec"]["nodeName"].as_str(), unscheduled) {
            (Some(node), _) => node.to_owned(),
            (None, Some(condition)) => condition["message"].as_str().unwrap().to_owned(),
            (None, None) => "-".to_owned(),
        }
    }

    fn manager(&self, identity: &str) -> Manager {
        self.measured(identity).0
    }

    fn measured(&self, identity: &str) -> (Manager, Metrics) {
        let (manager, metrics, _) = self.program_with_reader(identity);
        (manager, metrics)
    }

    fn program_with_reader(&self, identity: &str) -> (Manager, Metrics, EngineReader) {
        self.program(
            Client::new(self.server.router(), "default"),
            default_profile("koord-scheduler").unwrap(),
            identity,
        )
    }

    /// A program with this profile that reaches the server by this client.
    fn program(&self, client: Client, profile: Profile, identity: &str) -> (Manager, Metrics, EngineReader) {
        self.program_behind(None, client, profile, identity)
    }

    /// The same, whose caches agree with the API server when it becomes leader, or so much time has passed.
    fn program_agreeing(
        &self,
        within: Duration,
        client: Client,
        profile: Profile,
        identity: &str,
    ) -> (Manager, Metrics, EngineReader) {
        self.program_as(|scheduler| scheduler.agreeing(Some(within)), client, profile, identity)
    }

    /// The same, which waits for this when it becomes leader.
    fn program_behind(
        &self,
        barrier: Option<SyncBarrier>,
        client: Client,
        profile: Profile,
        identity: &str,
    ) -> (Manager, Metrics, EngineReader) {
        self.program_as(|scheduler| scheduler.behind(barrier), client, profile, identity)
    }

    fn program_as(
        &self,
        made: impl FnOnce(Scheduler) -> Scheduler,
        client: Client,
        profile: Profile,
        identity: &str,
    ) -> (Manager, Metrics, EngineReader) {
        let metrics = Metrics::new().unwrap();
        let (recorder, events) = Recorder::new(Arc::clone(&self.clock));
        let recorder = Arc::new(recorder);
        let mut core = Core::new(
            "koord-scheduler",
            Arc::clone(&self.clock),
            Random::seeded(7),
            metrics.clone(),
            Arc::clone(&recorder) as _,
        );
        if let Some(injector) = &self.panics {
            core.inject_panics(Arc::clone(injector));
        }
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(7));
        let feed = Feed::transforming(&mut core, &engine.reads(), self.transformers);
        let measures = Measures::of(&engine, &metrics).unwrap();
        let scheduler = Scheduler::new(engine, feed, recorder, Arc::clone(&self.clock)).measured_by(measures);
        let scheduler = made(scheduler);
        let reader = scheduler.reader();
        if let Some(writes) = self.explains {
            explain(&mut core, reader.clone(), self.transformers, writes);
        }
        let leader_election = Some(LeaderElectionConfig::new("kube-system", "koord-scheduler", identity));
        let settings = Settings {
            requests_per_second: self.limit.0,
            requests_burst: self.limit.1,
            leader_election,
            metrics: None,
            health: None,
            host: identity.to_owned(),
        };
        let mut manager = Manager::timed_by(Arc::clone(&self.clock), core, client, events, settings);
        install(scheduler, Arc::clone(&self.clock), &mut manager);
        (manager, metrics, reader)
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }
}

/// A client whose requests arrive after this has seen them.
fn client<F>(server: &Server, before: impl Fn(&http::Request<Body>) -> F + Clone + Send + 'static) -> Client
where
    F: Future<Output = ()> + Send + 'static,
{
    let router = server.router();
    let service = service_fn(move |request: http::Request<Body>| {
        let (seen, router) = (before(&request), router.clone());
        async move {
            seen.await;
            router.oneshot(request).await
        }
    });
    Client::new(service, "default")
}

/// A client for which a server has these paths in the place of those that it asks for; nothing is found where there is none.
fn rerouted(server: &Server, path: impl Fn(&str) -> Option<String> + Clone + Send + 'static) -> Client {
    let router = server.router();
    let service = service_fn(move |request: http::Request<Body>| {
        let (path, router) = (path.clone(), router.clone());
        async move {
            let (mut head, body) = request.into_parts();
            let uri = path(&head.uri.to_string()).unwrap_or_else(|| "/nowhere".to_owned());
            head.uri = uri.parse().unwrap();
            router.oneshot(http::Request::from_parts(head, body)).await
        }
    });
    Client::new(service, "default")
}

// === what it does ===

#[tokio::test(start_paused = true)]
async fn pods_are_bound_where_they_fit_and_the_others_learn_why_not() {
    let stage = Stage::new();
    stage.add_node("small", "1");
    stage.add_node("large", "4");
    stage.add_pod("before", "3");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(stage.place("before"), "large");

    stage.add_pod("after", "1");
    stage.add_pod("waits", "2");
    stage.pass(2).await;
    assert_eq!(stage.place("after"), "small", "the emptier of both");
    let refused = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: \
                   1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.";
    assert_eq!(stage.place("waits"), refused);
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let event = |name: &str| {
        let mut events = events["items"].as_array().unwrap().iter();
        let event = events.find(|event| event["involvedObject"]["name"] == name).unwrap();
        format!("{} {}: {}", event["type"], event["reason"], event["message"].as_str().unwrap())
    };
    assert_eq!(event("after"), r#""Normal" "Scheduled": Successfully assigned default/after to small"#);
    assert_eq!(event("waits"), format!(r#""Warning" "FailedScheduling": {refused}"#));

    let before = stage.send(Method::GET, &format!("{PODS}/waits"), &Value::Null);
    stage.pass(240).await;
    let after = stage.send(Method::GET, &format!("{PODS}/waits"), &Value::Null);
    assert_eq!(before, after, "nothing has happened that helps, so nothing is written");

    stage.send(Method::DELETE, &format!("{PODS}/before"), &json!({"gracePeriodSeconds": 0}));
    stage.pass(2).await;
    assert_eq!(stage.place("waits"), "large");
    stop.cancel();
    running.await.unwrap().unwrap();
}
