//! Which keys a change leads to, by what the attribute of the controller says.

use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use koord_resource::{Projection, controller, controller::ResourceKind};
use koord_runtime::{
    Core, Wiring,
    cache::Change,
    child::Child,
    clock::{ManualClock, SharedClock},
    controller::{Controller, Requests, Worker},
    effect::{EffectError, EffectLimits, Effects, Progress},
    error::ReconcileError,
    events::EventSink,
    index::{By, Term},
    key::ObjectKey,
    metrics::Metrics,
    outcome::Outcome,
    ownership::{Finalizers, Owner},
    plan::Execution,
    projection::Labels,
    random::Random,
    store::Store,
};
use serde_json::{Value, json};

/// A pod that reads a Secret.
#[derive(PartialEq, Projection)]
#[koord(kind = ResourceKind::POD, index = By<PodView, BySecret>)]
struct PodView {
    labels: Labels,
    finalizers: Finalizers,
    controller: Option<Owner>,
    secret: Option<String>,
}

/// The key of the Secret that a pod names, in its own namespace.
struct BySecret;

impl Term<PodView> for BySecret {
    type Value = ObjectKey;

    fn terms(key: &ObjectKey, pod: &PodView, found_by: &mut dyn FnMut(ObjectKey)) {
        pod.secret.iter().for_each(|secret| found_by(ObjectKey::new(key.namespace(), secret)));
    }
}

#[derive(PartialEq, Projection)]
#[koord(kind = ResourceKind::SECRET)]
struct SecretView {
    data: Option<Value>,
}

#[derive(PartialEq, Projection)]
#[koord(kind = ResourceKind::EVENT)]
struct EventView {
    labels: Labels,
}

#[derive(PartialEq, Projection)]
#[koord(kind = ResourceKind::NAMESPACE)]
struct NamespaceView {
    labels: Labels,
}

const LIMITS: EffectLimits = EffectLimits { concurrency: 1, ..EffectLimits::DEFAULT };

/// Follows four kinds in four ways.
#[controller(
    name = "pods",
    for = pods,
    owns(maps),
    watches(secrets, by = index),
    watches(events, by = label("pod"), predicate = has_label),
    watches(namespaces, by = Self::of_namespace),
    effects(calls, limits = LIMITS),
)]
struct Follower {
    pods: Arc<Store<PodView>>,
    maps: Arc<Store<Child<ConfigMap>>>,
    secrets: Arc<Store<SecretView>>,
    events: Arc<Store<EventView>>,
    namespaces: Arc<Store<NamespaceView>>,
    calls: Arc<Effects<String, u32>>,
    answer: &'static str,
}

impl Follower {
    fn of_namespace(&self, change: &Change<NamespaceView>, requests: &mut Requests) {
        self.pods.read().in_namespace(change.key.name()).for_each(|(key, _)| requests.enqueue(key));
    }
}

fn has_label(change: &Change<EventView>) -> bool {
    change.new.as_ref().is_some_and(|entry| entry.value.labels.get("pod").is_some())
}

impl Controller for Follower {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let pods = self.pods.read();
        let Some(pod) = pods.get(key.as_str()) else { return Ok(Outcome::settled()) };
        let mut outcome = Outcome::of(key, pod);
        let answer = self.answer;
        if let Some(secret) = pod.value.secret.clone()
            && let Progress::Done(_) = outcome
                .effect(&self.calls, key, secret, async move { answer.parse::<u32>().map_err(EffectError::from) })
        {
            outcome.requeue_after(Duration::from_hours(1));
        }
        Ok(outcome)
    }
}

struct Stage {
    core: Core,
    worker: Arc<Worker>,
}

struct Nobody;

impl EventSink for Nobody {
    fn record(&self, _: &'static str, _: koord_runtime::events::Event) {}
}

impl Stage {
    fn new() -> Self {
        let clock: SharedClock = ManualClock::new(Timestamp::UNIX_EPOCH);
        let mut core = Core::new("tester", clock, Random::seeded(1), Metrics::new().unwrap(), Arc::new(Nobody));
        let worker = core
            .add(Follower::SPEC, "pods", |wiring| Follower::wire(wiring, "7"))
            .unwrap_or_else(|error: Infallible| match error {});
        Self { core, worker }
    }

    /// The watch of a kind shows an object. Gives the keys that are reconciled because of it.
    fn shows(&self, kind: &str, object: &Value) -> Vec<String> {
        let watch = self.core.watches().iter().find(|watch| watch.kind.kind == kind).unwrap();
        watch.sink.upsert(&object.to_string()).unwrap();
        self.woken()
    }

    fn woken(&self) -> Vec<String> {
        let mut woken = BTreeSet::new();
        while let Some(attempt) = self.worker.take() {
            woken.insert(attempt.key().to_string());
            let outcome = self.worker.decide(&attempt).unwrap();
            self.worker.finish(attempt, Execution::of(outcome));
        }
        woken.into_iter().collect()
    }
}

fn object(name: &str, revision: u32, rest: &Value) -> Value {
    let mut object =
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": revision.to_string()}});
    for (member, value) in rest.as_object().unwrap() {
        match member.as_str() {
            "labels" | "ownerReferences" | "finalizers" => object["metadata"][member] = value.clone(),
            _ => object[member] = value.clone(),
        }
    }
    object
}

#[test]
fn a_change_leads_to_the_keys_that_the_attribute_names() {
    let stage = Stage::new();
    assert_eq!(stage.shows("Pod", &object("a", 1, &json!({"secret": "s"}))), ["ns/a"]);
    assert_eq!(stage.shows("Pod", &object("b", 2, &json!({}))), ["ns/b"]);

    let owned = |owner: &str, controller: bool| json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": controller}]});
    assert_eq!(stage.shows("ConfigMap", &object("m", 3, &owned("a", true))), ["ns/a"]);
    assert_eq!(
        stage.shows("ConfigMap", &object("m", 4, &owned("b", true))),
        ["ns/a", "ns/b"],
        "the old owner and the new"
    );
    assert_eq!(
        stage.shows("ConfigMap", &object("n", 5, &owned("a", false))),
        [""; 0],
        "an owner that does not control"
    );

    assert_eq!(stage.shows("Secret", &object("s", 6, &json!({"data": {"x": "eA=="}}))), ["ns/a"]);
    assert_eq!(stage.shows("Secret", &object("t", 7, &json!({}))), [""; 0]);
    // The same name in two namespaces is two Secrets.
    let in_pay = |mut object: Value| {
        object["metadata"]["namespace"] = json!("pay");
        object
    };
    let pod = json!({"metadata": {"name": "a", "uid": "pay-a", "resourceVersion": "11"}, "secret": "s"});
    assert_eq!(stage.shows("Pod", &in_pay(pod)), ["pay/a"]);
    let secret = |uid: &str, revision: u32, data: &str| json!({"metadata": {"namespace": "ns", "name": "s", "uid": uid, "resourceVersion": revision.to_string()}, "data": {"x": data}});
    assert_eq!(stage.shows("Secret", &in_pay(secret("pay-s", 12, "eQ=="))), ["pay/a"]);
    assert_eq!(stage.shows("Secret", &secret("s", 13, "eg==")), ["ns/a"]);

    assert_eq!(stage.shows("Event", &object("e", 8, &json!({"labels": {"pod": "b"}}))), ["ns/b"]);
    assert_eq!(stage.shows("Event", &object("e", 9, &json!({}))), [""; 0], "the predicate");

    let namespace = json!({"metadata": {"name": "ns", "uid": "ns", "resourceVersion": "10"}});
    assert_eq!(stage.shows("Namespace", &namespace), ["ns/a", "ns/b"]);
}

#[test]
fn what_a_projection_reads_of_the_metadata_is_read_there() {
    let stage = Stage::new();
    let pods = stage.core.watches().iter().find(|watch| watch.kind == ResourceKind::POD).unwrap();
    assert_eq!(pods.kind.kind, "Pod");
    stage.shows("Pod", &object("a", 1, &json!({"finalizers": ["x/y"], "labels": {"l": "1"}})));
    // A finalizer alone is a change of this projection.
    assert_eq!(stage.shows("Pod", &object("a", 2, &json!({"finalizers": ["x/z"], "labels": {"l": "1"}}))), ["ns/a"]);
    assert_eq!(
        stage.shows("Pod", &object("a", 3, &json!({"finalizers": ["x/z"], "labels": {"l": "1"}, "spec": {}}))),
        [""; 0]
    );
}

/// The effects are those of a controller that a test makes itself, and answers: nobody runs them here.
#[test]
fn the_result_of_an_effect_wakes_its_key() {
    let clock: SharedClock = ManualClock::new(Timestamp::UNIX_EPOCH);
    let mut core = Core::new("tester", clock, Random::seeded(1), Metrics::new().unwrap(), Arc::new(Nobody));
    let mut calls = None;
    let wire = |wiring: &mut Wiring<'_>| {
        let controller = Follower::wire(wiring, "7")?;
        calls = Some(Arc::clone(&controller.calls));
        Ok(controller)
    };
    let worker = core.add(Follower::SPEC, "pods", wire).unwrap_or_else(|error: Infallible| match error {});
    let (stage, calls) = (Stage { core, worker }, calls.unwrap());
    let key = ObjectKey::new("ns", "a");
    stage.shows("Pod", &object("a", 1, &json!({"secret": "s"})));
    assert_eq!(calls.waiting(), [(key.clone(), "s".to_owned())]);
    assert!(calls.answer(&key, Ok(7)));
    assert_eq!((stage.woken(), calls.waiting()), (vec!["ns/a".to_owned()], vec![]));
    // Other inputs are another effect, and none is asked for in the end.
    stage.shows("Pod", &object("a", 2, &json!({"secret": "t"})));
    assert_eq!(calls.waiting(), [(key.clone(), "t".to_owned())]);
    stage.shows("Pod", &object("a", 3, &json!({})));
    assert_eq!((calls.waiting(), calls.progress(&key, &"t".to_owned())), (vec![], Progress::Pending));
}
