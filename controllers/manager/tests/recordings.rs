//! What the original's controllers did in recorded situations, and ours, on the embedded API server's core.
//!
//! Each line of `tests/data/manager/*.jsonl` is a situation: objects that are there, what people do then, and how the
//! watched objects look afterwards. Further recordings are played where the folder that `KOORD_SHARED` names, or
//! `../shared` beside the repository, has them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

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
use koord_api::{node_metric::NodeMetric, node_slo::NodeSLO};
use koord_manager_controllers::{
    ConfigSource,
    nodemetric::{self, NodeMetricController},
    nodeslo::{self, NodeSloController},
};
use koord_resource::{Quantity, Resource, controller::ResourceKind};
use koord_runtime::{
    Core,
    clock::ManualClock,
    events::{Event, EventSink, EventType},
    metrics::Metrics,
    random::Random,
    reflector::Ask,
    write::{Answer, WireRequest},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

const CONFIG_MAP: &str = "slo-controller-config";
const NAMESPACE: &str = "koordinator-system";

/// Recordings with which we differ on purpose; each has its row in docs/divergences.md.
const DIVERGENCES: &[&str] = &[
    // A strategy for some nodes that names no bandwidth inherits it; the original sets it to 0.
    "nodeslo/system-node",
];

// === the cluster and the manager in it ===

struct Stage {
    server: ApiServer,
    core: Core,
    open: Vec<Option<Box<Watch>>>,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told(Mutex<BTreeSet<(&'static str, Event)>>);

impl EventSink for Told {
    fn record(&self, component: &'static str, event: Event) {
        self.0.lock().insert((component, event));
    }
}

impl Stage {
    fn new() -> Self {
        let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let environment = SeededEnvironment::new(1, Timestamp::UNIX_EPOCH);
        let mut server = ApiServer::empty(Box::new(environment), HistoryLimits::default());
        kinds::install(&mut server);
        for kind in [ResourceKind::of(&NodeSLO::INFO), ResourceKind::of(&NodeMetric::INFO)] {
            let shelf = server.store.shelf_id(&format!("{}/{}", kind.group, kind.plural));
            let mut definition = ResourceDef::new(kind.group, kind.version, kind.kind, kind.plural, false, shelf);
            let verbs = ["get", "patch", "update"].map(str::to_owned).to_vec();
            definition.subresources.push(Subresource { name: "status".to_owned(), body: None, verbs });
            server.registry.insert(definition);
        }
        let told = Arc::new(Told::default());
        let events = Arc::clone(&told) as Arc<dyn EventSink>;
        let mut core = Core::new(clock, Random::seeded(1), Metrics::new().unwrap(), events);
        let source = ConfigSource::default();
        let (metric, slo) = (nodemetric::COMPONENT, nodeslo::COMPONENT);
        core.add(NodeMetricController::SPEC, metric, |wiring| NodeMetricController::wire(wiring, &source)).unwrap();
        core.add(NodeSloController::SPEC, slo, |wiring| NodeSloController::wire(wiring, &source)).unwrap();
        let open = core.watches().iter().map(|_| None).collect();
        let mut stage = Self { server, core, open, told };
        for name in ["default", NAMESPACE] {
            stage.send("POST", "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": {}});
        stage.put(&config);
        stage.settle();
        stage
    }

    fn send(&mut self, method: &'static str, uri: &str, body: &Value) -> (u16, Value) {
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
    fn put(&mut self, object: &Value) {
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
    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut busy = false;
            for index in 0..self.open.len() {
                busy |= self.follow(index);
            }
            for worker in self.core.workers().to_vec() {
                let Some(attempt) = worker.take() else { continue };
                busy = true;
                let mut result = Ok(None);
                match worker.decide(&attempt) {
                    Err(error) => result = Err(error),
                    Ok(outcome) => {
                        for write in &outcome.plan {
                            let answer = self.answer(&write.request("koordinator-manager"));
                            result = worker.written(write, write.judge(&answer)).map(|()| None);
                        }
                        worker.tell(outcome.events);
                    }
                }
                if let Err(error) = &result {
                    panic!("{error}");
                }
                worker.settle(attempt, result);
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
            let Ask::Watch { query, .. } = reflector.ask(now, &random) else { panic!("a watch is expected") };
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

    fn observe(&mut self, watched: &Value) -> Value {
        if watched["kind"] == "EventsOf" {
            let told = self.told.0.lock();
            let about = told.iter().filter(|(_, event)| watched["of"]["name"] == event.key.name());
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
        object
    }
}

fn paths(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kinds = [
        ResourceKind::NODE,
        ResourceKind::CONFIG_MAP,
        ResourceKind::of(&NodeSLO::INFO),
        ResourceKind::of(&NodeMetric::INFO),
    ];
    let kind = kinds.into_iter().find(|kind| kind.kind == text("/kind")).unwrap();
    let namespace = text("/metadata/namespace");
    (kind.url_path(namespace, None), kind.url_path(namespace, Some(text("/metadata/name"))))
}

// === playing a recording ===

/// Nulls and empty objects say nothing, and quantities are equal by value.
fn meaning(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let said = map.iter().map(|(key, value)| (key.clone(), meaning(value)));
            Value::Object(said.filter(|(_, value)| !value.is_null() && *value != json!({})).collect())
        }
        Value::Array(items) => items.iter().map(meaning).collect(),
        Value::String(text) => {
            text.parse::<Quantity>().map_or_else(|_| value.clone(), |quantity| quantity.to_string().into())
        }
        Value::Number(number) => number.to_string().into(),
        other => other.clone(),
    }
}

fn play(case: &Value) -> Result<(), String> {
    let mut stage = Stage::new();
    for object in case["given"].as_array().unwrap() {
        stage.put(object);
        stage.settle();
    }
    for step in case["then"].as_array().unwrap() {
        match step["op"].as_str().unwrap() {
            "create" | "update" => stage.put(&step["object"]),
            "delete" => {
                stage.send("DELETE", &paths(&step["object"]).1, &json!({}));
            }
            "patch" => {
                stage.send("PATCH", &paths(&step["ref"]).1, &step["patch"]);
            }
            other => panic!("unknown step {other}"),
        }
        stage.settle();
    }
    let watched = case["watch"].as_array().unwrap();
    let found: Value = watched.iter().map(|watched| stage.observe(watched)).collect();
    let (expected, found) = (meaning(&case["recorded"]), meaning(&found));
    if expected == found { Ok(()) } else { Err(format!("recorded {expected}\n     found {found}")) }
}

fn recordings(group: &str) -> Vec<Value> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let own = fs::read_to_string(root.join(format!("tests/data/manager/{group}.jsonl"))).unwrap();
    let mut cases: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shared = std::env::var_os("KOORD_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let known: BTreeSet<String> = cases.iter().map(|case| case["name"].to_string()).collect();
    let files = fs::read_dir(shared.join("corpus/manager/cases").join(group)).into_iter().flatten();
    let mut further: Vec<Value> = files
        .map(|file| serde_json::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap())
        .filter(|case: &Value| !known.contains(&case["name"].to_string()))
        .collect();
    cases.append(&mut further);
    cases
}

fn play_all(group: &str) {
    let cases = recordings(group);
    let mut failures = Vec::new();
    for case in &cases {
        let name = format!("{group}/{}", case["name"].as_str().unwrap());
        let expected_to_differ = DIVERGENCES.contains(&name.as_str());
        match play(case) {
            Ok(()) if expected_to_differ => failures.push(format!("{name}: no longer differs; strike it off the list")),
            Err(difference) if !expected_to_differ => {
                failures.push(format!("{name} ({}):\n  {difference}", case["about"].as_str().unwrap_or_default()));
            }
            _ => {}
        }
    }
    println!("{group}: {} recordings, {} with which we differ by mistake", cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn nodeslo_does_what_the_original_did() {
    play_all("nodeslo");
}

#[test]
fn nodemetric_does_what_the_original_did() {
    play_all("nodemetric");
}
