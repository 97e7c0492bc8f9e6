//! A manager with one small controller, over kube's client and the embedded API server in the same process.

use std::{convert::Infallible, sync::Arc, time::Duration};

use envtest::{
    environment::SeededEnvironment,
    kinds,
    request::ApiRequest,
    server::ApiServer,
    shell::{Parts, Server},
    store::HistoryLimits,
};
use futures::StreamExt;
use http::Method;
use jiff::Timestamp;
use koord_resource::controller::{ControllerSpec, RateLimit, ResourceKind};
use koord_runtime::{
    Core, Wiring,
    clock::SystemClock,
    controller::{Controller, same_key},
    error::ReconcileError,
    events::{Event, EventType},
    intern::Interner,
    key::ObjectKey,
    lease::Candidacy,
    manager::{Manager, Settings},
    metrics::{Audience, Metrics},
    outcome::{Outcome, Owned},
    projection::{Metadata, MetadataOnly, Projection, Unreadable, WireMetadata},
    random::Random,
    recorder::Recorder,
    reflector::{Initial, Selection},
    store::Store,
};
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

// === the controller: every node has a ConfigMap that names it ===

#[derive(PartialEq)]
struct NodeView;

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(_: MetadataOnly<'_>, _: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self)
    }
}

#[derive(PartialEq)]
struct CardView(Arc<str>);

#[derive(Deserialize)]
struct CardWire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl<'a> Metadata<'a> for CardWire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for CardView {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
    type Wire<'a> = CardWire<'a>;
    type Index = ();

    fn project(wire: CardWire<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self(strings.intern(wire.data.map_or("{}", RawValue::get))))
    }
}

impl Owned for CardView {
    fn owned(&self) -> Value {
        json!({"data": serde_json::from_str::<Value>(&self.0).unwrap_or_default()})
    }
}

struct NameCards {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
}

const SPEC: ControllerSpec = ControllerSpec {
    name: "name-cards",
    for_kind: ResourceKind::NODE,
    owns: &[ResourceKind::CONFIG_MAP],
    watches: &[],
    concurrency: 2,
    rate_limit: RateLimit::DEFAULT,
    gate: None,
    rbac: &[],
};

impl NameCards {
    fn wire(wiring: &mut Wiring<'_>) -> Arc<Self> {
        let selection = Selection { namespace: "default".to_owned(), ..Selection::default() };
        let (nodes, cards) = (wiring.reads::<NodeView>(), wiring.reads_some::<CardView>(&selection));
        wiring.on(&nodes, same_key);
        wiring.on(&cards, |change, reaction| reaction.enqueue(&ObjectKey::cluster(change.key.name())));
        Arc::new(Self { nodes, cards })
    }
}

impl Controller for NameCards {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (nodes, cards) = (self.nodes.read(), self.cards.read());
        let card = ObjectKey::new("default", key.name());
        let mut outcome = Outcome::settled();
        let Some(node) = nodes.get(key.as_str()) else {
            outcome.absent(&cards, &card);
            return Ok(outcome);
        };
        let Value::Object(body) = json!({"data": {"name": key.name()}}) else { unreachable!() };
        outcome.present(&cards, &card, body)?;
        if !outcome.plan.is_empty() {
            let (kind, uid) = (ResourceKind::NODE, Arc::clone(&node.uid));
            let message = "the node has got its name card".to_owned();
            let (key, type_, reason) = (key.clone(), EventType::Normal, "NameCard");
            outcome.event(Event { kind, key, uid, type_, reason, message });
        }
        Ok(outcome)
    }
}

// === the stage ===

fn server() -> Server {
    let environment = SeededEnvironment::new(1, Timestamp::now());
    let mut core = ApiServer::empty(Box::new(environment), HistoryLimits::default());
    kinds::install(&mut core);
    let server = Server::new(core, Parts::default());
    for name in ["default", "kube-system"] {
        send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
    }
    server
}

fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    let mut request = ApiRequest::new(method, path, body.to_string());
    if request.method == Method::PATCH {
        request.content_type = "application/merge-patch+json".into();
    }
    match server.with_core(|core| core.handle(&request)) {
        envtest::server::Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn client(server: &Server) -> Client {
    Client::new(server.router(), "default")
}

fn settings(candidacy: Option<Candidacy>) -> Settings {
    Settings {
        field_manager: "cards",
        requests_per_second: 0.0,
        requests_burst: 0,
        candidacy,
        metrics: None,
        health: None,
        host: "test".to_owned(),
    }
}

fn manager(server: &Server, initial: Initial, candidacy: Option<Candidacy>) -> Manager {
    let (recorder, told) = Recorder::new(SystemClock::shared());
    let random = Random::seeded(7);
    let mut core = Core::new(SystemClock::shared(), random, Metrics::new().unwrap(), Arc::new(recorder));
    core.set_initial(initial);
    core.add(SPEC, "card-controller", |wiring| Ok::<_, Infallible>(NameCards::wire(wiring))).unwrap();
    Manager::new(core, client(server), told, settings(candidacy))
}

async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..500 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen within five seconds");
}

fn card(server: &Server, name: &str) -> Option<String> {
    let found = send(server, Method::GET, &format!("/api/v1/namespaces/default/configmaps/{name}"), &Value::Null);
    found["data"]["name"].as_str().map(ToOwned::to_owned)
}

// === what it does ===

async fn keeps_its_objects_right(initial: Initial) {
    let server = server();
    let node = json!({"metadata": {"name": "n1"}});
    send(&server, Method::POST, "/api/v1/nodes", &node);
    let manager = manager(&server, initial, None);
    let core = Arc::clone(manager.core());
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));

    eventually("a card for a node that was there before", || card(&server, "n1").filter(|name| name == "n1")).await;
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n2"}}));
    eventually("a card for a node that came", || card(&server, "n2")).await;

    let path = "/api/v1/namespaces/default/configmaps/n1";
    send(&server, Method::PATCH, path, &json!({"data": {"name": "someone else", "more": "x"}}));
    eventually("repair", || card(&server, "n1").filter(|name| name == "n1")).await;
    assert_eq!(send(&server, Method::GET, path, &Value::Null)["data"], json!({"name": "n1"}));

    send(&server, Method::DELETE, path, &json!({}));
    eventually("a new card", || card(&server, "n1")).await;

    send(&server, Method::DELETE, "/api/v1/nodes/n2", &json!({}));
    eventually("the end of a card", || card(&server, "n2").is_none().then_some(())).await;

    let told = eventually("an event", || {
        let events = send(&server, Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
        events["items"].as_array().unwrap().iter().find(|event| event["involvedObject"]["name"] == "n1").cloned()
    });
    let told = told.await;
    assert_eq!((&told["reason"], &told["source"]["component"]), (&json!("NameCard"), &json!("card-controller")));

    core.refresh_metrics();
    let text = core.metrics().text(&[Audience::Runtime]);
    let names = [
        r#"controller_runtime_reconcile_total{controller="name-cards",result="success"}"#,
        r#"workqueue_adds_total{controller="name-cards",name="name-cards"}"#,
        r#"workqueue_depth{controller="name-cards",name="name-cards"} 0"#,
        r#"koord_cache_objects{kind="Node"} 1"#,
        r#"rest_client_requests_total{code="201",host="apiserver",method="POST"}"#,
    ];
    for name in names {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(5), running).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_controller_keeps_its_objects_right_with_streamed_initial_events() {
    keeps_its_objects_right(Initial::Stream).await;
}

#[tokio::test]
async fn a_controller_keeps_its_objects_right_with_lists_by_page() {
    keeps_its_objects_right(Initial::Pages).await;
}

#[tokio::test]
async fn the_second_replica_takes_over_when_the_first_gives_the_lease_back() {
    let server = server();
    let candidacy = |identity: &str| Candidacy {
        retry: Duration::from_millis(50),
        release: true,
        ..Candidacy::new("kube-system", "cards", identity)
    };
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let one = manager(&server, Initial::Stream, Some(candidacy("one")));
    let mut leads = one.leading();
    let one = tokio::spawn(one.run(first.clone()));
    tokio::time::timeout(Duration::from_secs(5), leads.wait_for(|leads| *leads)).await.unwrap().unwrap();

    let two = manager(&server, Initial::Stream, Some(candidacy("two")));
    let mut leads = two.leading();
    let two = tokio::spawn(two.run(second.clone()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!*leads.borrow(), "there is one leader");
    first.cancel();
    one.await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(5), leads.wait_for(|leads| *leads)).await.unwrap().unwrap();

    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cards";
    let lease = send(&server, Method::GET, path, &Value::Null);
    assert_eq!((&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]), (&json!("two"), &json!(1)));
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    eventually("a card from the second", || card(&server, "n1")).await;
    second.cancel();
    two.await.unwrap().unwrap();
}

/// The trial on which the design rests: kube's own decoder can leave objects as text. The runtime reads lines itself
/// because then one buffer serves all events and a broken line can be told from a malformed object.
#[tokio::test]
async fn kubes_watch_can_leave_objects_as_text() {
    let server = server();
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    let request = http::Request::get("/api/v1/nodes?watch=true&timeoutSeconds=1").body(Vec::new()).unwrap();
    let events = client(&server).request_events::<Box<RawValue>>(request).await.unwrap();
    let first = std::pin::pin!(events).next().await;
    let Some(Ok(WatchEvent::Added(object))) = first else { panic!("no event came") };
    assert!(object.get().contains(r#""name":"n1""#), "{object}");
}
