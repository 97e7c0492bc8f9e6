//! A cluster with the manager in it, in one thread and on a manual clock.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use envtest::{
    environment::SeededEnvironment,
    kinds,
    registry::{ResourceDef, Subresource},
    request::ApiRequest,
    server::{ApiServer, Outcome, Watch},
    store::HistoryLimits,
};
use http::Method;
use jiff::Timestamp;
use koord_manager_controllers::{
    ConfigSource,
    colocationprofile::{self, ColocationProfileController},
    nodemetric::{self, NodeMetricController},
    noderesource::{self, NodeResourceController, Plugins},
    nodeslo::{self, NodeSloController},
    quotaprofile::{self, QuotaProfileController},
};
use koord_resource::{Resource, controller::ResourceKind};
use koord_runtime::{
    Core,
    clock::{Clock as _, ManualClock, SharedClock},
    events::{Event, EventSink, EventType},
    metrics::{Audience, Metrics},
    plan::Execution,
    random::Random,
    reflector::Ask,
    write::{Answer, WireRequest},
};
use koord_types::{
    cluster_colocation_profile::ClusterColocationProfile, device::Device, elastic_quota::ElasticQuota,
    elastic_quota_profile::ElasticQuotaProfile, node_metric::NodeMetric,
    node_resource_topology::v1alpha1::NodeResourceTopology, node_slo::NodeSLO,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

const CONFIG_MAP: &str = "slo-controller-config";
const NAMESPACE: &str = "koordinator-system";

/// The declared kinds of which objects occur in recordings.
const DECLARED: [ResourceKind; 7] = [
    ResourceKind::of(&ClusterColocationProfile::INFO),
    ResourceKind::of(&NodeSLO::INFO),
    ResourceKind::of(&NodeMetric::INFO),
    ResourceKind::of(&NodeResourceTopology::INFO),
    ResourceKind::of(&Device::INFO),
    ResourceKind::of(&ElasticQuota::INFO),
    ResourceKind::of(&ElasticQuotaProfile::INFO),
];

/// When every recording begins.
pub(crate) const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(crate) struct Stage {
    server: ApiServer,
    core: Core,
    clock: Arc<ManualClock>,
    /// Every write of the manager, as a line of a plan.
    pub(crate) writes: Vec<String>,
    /// Whether the API server may refuse writes.
    pub(crate) refusals_allowed: bool,
    /// What it answers to writes of this kind instead of doing them, while there is such an answer.
    pub(crate) refusals: (&'static str, VecDeque<Answer>),
    open: Vec<Option<Box<Watch>>>,
    events: Arc<Events>,
}

#[derive(Default)]
struct Events(Mutex<BTreeSet<(&'static str, Event)>>);

impl EventSink for Events {
    fn record(&self, component: &'static str, event: Event) {
        self.0.lock().insert((component, event));
    }
}

impl Stage {
    pub(crate) fn new(gates: &str) -> Self {
        Self::with_profiles(gates, colocationprofile::Settings::default())
    }

    /// With flags of the colocationprofile controller.
    pub(crate) fn with_profiles(gates: &str, profiles: colocationprofile::Settings) -> Self {
        let mut stage = Self::asleep(gates, profiles);
        stage.settle();
        stage
    }

    /// The same with a manager that has not started yet: it does so when it may first [settle](Stage::settle).
    pub(crate) fn asleep(gates: &str, profiles: colocationprofile::Settings) -> Self {
        let clock = ManualClock::new(START);
        let environment = SeededEnvironment::new(1, START);
        let mut server = ApiServer::empty(Box::new(environment), HistoryLimits::default());
        kinds::install(&mut server);
        for kind in DECLARED {
            let collection = server.store.collection_id(&format!("{}/{}", kind.group, kind.plural));
            let mut definition =
                ResourceDef::new(kind.group, kind.version, kind.kind, kind.plural, kind.namespaced, collection);
            let verbs = ["get", "patch", "update"].map(str::to_owned).to_vec();
            definition.subresources.push(Subresource { name: "status".to_owned(), body: None, verbs });
            server.registry.insert(definition);
        }
        let events = Arc::new(Events::default());
        let sink = Arc::clone(&events) as Arc<dyn EventSink>;
        let mut core = Core::new(
            "koordinator-manager",
            Arc::clone(&clock) as SharedClock,
            Random::seeded(1),
            Metrics::new().unwrap(),
            sink,
        );
        let source = ConfigSource::default();
        let (metric, slo) = (nodemetric::COMPONENT, nodeslo::COMPONENT);
        core.add(NodeMetricController::SPEC, metric, |wiring| NodeMetricController::wire(wiring, &source)).unwrap();
        core.add(NodeSloController::SPEC, slo, |wiring| NodeSloController::wire(wiring, &source)).unwrap();
        let plugins = Plugins::chosen(&["*"], gates.contains("EnableSyncGPUSharedResource=true"));
        core.add(NodeResourceController::SPEC, noderesource::COMPONENT, |wiring| {
            NodeResourceController::wire(wiring, &source, plugins)
        })
        .unwrap();
        core.add(QuotaProfileController::SPEC, quotaprofile::COMPONENT, QuotaProfileController::wire).unwrap();
        if gates.contains("ColocationProfileController=true") {
            core.add(ColocationProfileController::SPEC, colocationprofile::COMPONENT, |wiring| {
                ColocationProfileController::wire(wiring, profiles)
            })
            .unwrap();
        }
        let open = core.watches().iter().map(|_| None).collect();
        let mut stage = Self {
            server,
            core,
            clock,
            writes: Vec::new(),
            refusals_allowed: false,
            refusals: Default::default(),
            open,
            events,
        };
        for name in ["default", "kube-system", NAMESPACE] {
            stage.send("POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        for (name, value) in [("prod", 9000), ("mid", 7000), ("batch", 5000), ("free", 3000)] {
            stage.put(&json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
                              "metadata": {"name": format!("koord-{name}")}}));
        }
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": {}});
        stage.put(&config);
        stage
    }

    /// Lets time pass, and the manager do what is then to do.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.pass(time);
        self.settle();
    }

    /// Lets time pass while the manager does nothing.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.clock.advance(time);
    }

    /// The time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::try_from(self.clock.now().duration_since(START)).unwrap()
    }

    /// The reasons of all events about an object.
    pub(crate) fn reasons(&self, name: &str) -> Vec<&'static str> {
        self.events
            .0
            .lock()
            .iter()
            .filter(|(_, event)| event.key.name() == name)
            .map(|(_, event)| event.reason)
            .collect()
    }

    /// The messages of the events about objects of this name.
    pub(crate) fn messages(&self, name: &str) -> Vec<String> {
        let events = self.events.0.lock();
        events.iter().filter(|(_, event)| event.key.name() == name).map(|(_, event)| event.message.clone()).collect()
    }

    /// The lines of a metric as it is served.
    pub(crate) fn metric(&self, name: &str) -> Vec<String> {
        let text = self.core.metrics().text(&[Audience::Internal, Audience::Runtime]);
        text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
    }

    pub(crate) fn send(&mut self, method: &'static str, uri: &str, body: &Value) -> (u16, Value) {
        let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.answer(&WireRequest { method, uri: uri.to_owned(), content_type, body });
        (answer.code, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    fn answer(&mut self, request: &WireRequest) -> Answer {
        let mut asked =
            ApiRequest::new(Method::from_bytes(request.method.as_bytes()).unwrap(), &request.uri, request.body.clone());
        request.content_type.clone_into(&mut asked.content_type);
        let Outcome::Done(answer) = self.server.handle(&asked) else { panic!("{request:?}") };
        Answer { code: answer.code, retry_after: None, body: String::from_utf8(answer.body.to_vec()).unwrap() }
    }

    /// Creates an object, or brings it to this content; its status goes to the subresource.
    pub(crate) fn put(&mut self, object: &Value) {
        let (collection, path) = paths(object);
        let (code, answer) = self.send("POST", &collection, object);
        if code == 409 {
            let whole = object["kind"] == "ConfigMap";
            let (code, answer) = self.send(if whole { "PUT" } else { "PATCH" }, &path, object);
            assert!(code < 300, "{answer}");
        } else {
            assert!(code < 300, "{answer}");
        }
        if let Some(status) = object.get("status") {
            let (code, answer) = self.send("PATCH", &format!("{path}/status"), &json!({ "status": status }));
            assert!(code < 300, "{answer}");
        }
    }

    /// Lets the manager do everything that is to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let mut busy = false;
            for index in 0..self.open.len() {
                busy |= self.follow(index);
            }
            for worker in self.core.workers().to_vec() {
                let Some(attempt) = worker.take() else { continue };
                busy = true;
                let mut execution = match worker.decide(&attempt) {
                    Ok(outcome) => Execution::of(outcome),
                    Err(error) => {
                        assert!(self.refusals_allowed, "{error}");
                        worker.settle(attempt, Err(error));
                        continue;
                    }
                };
                while let Some(write) = execution.next_write() {
                    self.writes.push(write.to_string());
                    let (kind, refusals) = &mut self.refusals;
                    let refused = if *kind == write.kind.kind { refusals.pop_front() } else { None };
                    let answer = match refused {
                        Some(refusal) => refusal,
                        None => self.answer(&write.request("koordinator-manager")),
                    };
                    let result = write.judge(answer);
                    if let Err(error) = &result {
                        assert!(self.refusals_allowed, "{error}");
                    }
                    worker.written(&attempt, &mut execution, &write, result);
                }
                worker.finish(attempt, execution);
            }
            if !busy {
                return;
            }
        }
        panic!("the manager never rests");
    }

    fn follow(&mut self, index: usize) -> bool {
        let watch = Arc::clone(&self.core.watches()[index]);
        let (now, random) = (self.core.clock().moment(), self.core.random().clone());
        let mut reflector = watch.reflector.lock();
        let Some(open) = &mut self.open[index] else {
            let Ask::Watch { query, .. } = reflector.ask(now, &random, &*watch.sink) else {
                panic!("a watch is expected")
            };
            let request = ApiRequest::new(Method::GET, &format!("{}?{query}", watch.path()), "");
            let Outcome::Watch(opened) = self.server.handle(&request) else { panic!("{query}") };
            self.open[index] = Some(opened);
            return true;
        };
        let frames = self.server.poll_watch(open, 1000);
        for frame in &frames {
            reflector.line(std::str::from_utf8(&frame.text).unwrap().trim_end(), now, &random, &*watch.sink).unwrap();
        }
        !frames.is_empty()
    }

    pub(crate) fn observe(&mut self, watched: &Value) -> Value {
        if watched["kind"] == "EventsOf" {
            let events = self.events.0.lock();
            let about = events.iter().filter(|(_, event)| watched["of"]["name"] == event.key.name());
            let mut events: Vec<Value> = about
                .map(|(component, event)| {
                    let type_ = if event.type_ == EventType::Warning { "Warning" } else { "Normal" };
                    json!({"component": component, "message": event.message, "reason": event.reason, "type": type_})
                })
                .collect();
            events.sort_by_key(|event| event["message"].to_string());
            return json!({"kind": "EventsOf", "of": watched["of"], "events": events});
        }
        let (_, path) = paths(watched);
        let (code, mut object) = self.send("GET", &path, &Value::Null);
        if code == 404 {
            let mut absent = watched.clone();
            absent["absent"] = true.into();
            return absent;
        }
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        if object["kind"] == "Node" {
            let status =
                json!({"capacity": object["status"]["capacity"], "allocatable": object["status"]["allocatable"]});
            object.as_object_mut().unwrap().remove("spec");
            object["status"] = status;
        }
        object
    }
}

pub(crate) fn paths(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let built_in = [
        ResourceKind::NODE,
        ResourceKind::NAMESPACE,
        ResourceKind::POD,
        ResourceKind::CONFIG_MAP,
        ResourceKind::PRIORITY_CLASS,
    ];
    let kind = built_in.into_iter().chain(DECLARED).find(|kind| kind.kind == text("/kind")).unwrap();
    let namespace = text("/metadata/namespace");
    (kind.url_path(namespace, None), kind.url_path(namespace, Some(text("/metadata/name"))))
}
