//! A manager with the controller of the example, over kube's client and the embedded API server in the same process.

use std::{sync::Arc, time::Duration};

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
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    clock::SystemClock,
    intern::Interner,
    lease::LeaderElectionConfig,
    manager::{Manager, Settings},
    metrics::{Audience, Metrics},
    projection::{DecodeError, Metadata, MetadataOnly, Projection, WireMetadata},
    random::Random,
    recorder::Recorder,
    reflector::{Initial, Selection},
    store::Store,
};
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::name_cards::{COMPONENT, CardView, NameCards, NodeView};

// === the stage ===

pub(crate) fn server() -> Server {
    let environment = SeededEnvironment::new(1, Timestamp::now());
    let mut core = ApiServer::empty(Box::new(environment), HistoryLimits::default());
    kinds::install(&mut core);
    let server = Server::new(core, Parts::default());
    for name in ["default", "kube-system", "cards"] {
        send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
    }
    server
}

pub(crate) fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    match server.with_core(|core| core.handle(&ApiRequest::json(method, path, body))) {
        envtest::server::Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn client(server: &Server) -> Client {
    Client::new(server.router(), "default")
}

/// Without a limit of requests, and without ports.
pub(crate) fn settings(leader_election: Option<LeaderElectionConfig>) -> Settings {
    Settings {
        requests_per_second: 0.0,
        requests_burst: 0,
        leader_election,
        metrics: None,
        health: None,
        host: "test".to_owned(),
    }
}

pub(crate) fn manager(server: &Server, initial: Initial, leader_election: Option<LeaderElectionConfig>) -> Manager {
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let random = Random::seeded(7);
    let mut core = Core::new("cards", SystemClock::shared(), random, Metrics::new().unwrap(), Arc::new(recorder));
    core.set_initial(initial);
    core.add(NameCards::SPEC, COMPONENT, NameCards::wire).unwrap();
    Manager::new(core, client(server), events, settings(leader_election)).at_host("10.96.0.1:443")
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
    let found = send(server, Method::GET, &format!("/api/v1/namespaces/cards/configmaps/{name}"), &Value::Null);
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

    let path = "/api/v1/namespaces/cards/configmaps/n1";
    send(&server, Method::PATCH, path, &json!({"data": {"name": "someone else", "more": "x"}}));
    eventually("repair", || card(&server, "n1").filter(|name| name == "n1")).await;
    assert_eq!(send(&server, Method::GET, path, &Value::Null)["data"], json!({"name": "n1", "pool": "none"}));

    send(&server, Method::DELETE, path, &json!({}));
    eventually("a new card", || card(&server, "n1")).await;

    send(&server, Method::DELETE, "/api/v1/nodes/n2", &json!({}));
    eventually("the end of a card", || card(&server, "n2").is_none().then_some(())).await;

    let event = eventually("an event", || {
        let events = send(&server, Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
        events["items"].as_array().unwrap().iter().find(|event| event["involvedObject"]["name"] == "n1").cloned()
    });
    let event = event.await;
    assert_eq!((&event["reason"], &event["reportingComponent"]), (&json!("NameCard"), &json!("card-controller")));

    core.refresh_metrics();
    let text = core.metrics().text(&[Audience::Runtime]);
    let names = [
        r#"controller_runtime_reconcile_total{controller="name-cards",result="success"}"#,
        r#"workqueue_adds_total{controller="name-cards",name="name-cards"}"#,
        r#"workqueue_depth{controller="name-cards",name="name-cards",priority="0"} 0"#,
        r#"koord_cache_objects{kind="Node"} 1"#,
        r#"rest_client_requests_total{code="201",host="10.96.0.1:443",method="POST"}"#,
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

#[test]
fn a_restricted_program_watches_one_namespace_and_the_cluster() {
    let (recorder, _told) = Recorder::new(SystemClock::shared());
    let mut core =
        Core::new("cards", SystemClock::shared(), Random::seeded(1), Metrics::new().unwrap(), Arc::new(recorder));
    core.restrict_to(&["mine"]);
    let everywhere = core.store::<CardView>(&Selection::default());
    let mine = core.store::<CardView>(&Selection { namespace: "mine".to_owned(), ..Selection::default() });
    assert!(Arc::ptr_eq(&everywhere, &mine), "one watch serves both");
    core.store::<CardView>(&Selection { namespace: "named".to_owned(), ..Selection::default() });
    core.store::<NodeView>(&Selection::default());
    let paths: Vec<String> = core.watches().iter().map(|watch| watch.path()).collect();
    let expected = ["/api/v1/namespaces/mine/configmaps", "/api/v1/namespaces/named/configmaps", "/api/v1/nodes"];
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn one_cache_holds_the_objects_of_several_namespaces() {
    let server = server();
    let cards = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    let add = |namespace: &str, name: &str| {
        send(&server, Method::POST, &cards(namespace), &json!({"metadata": {"name": name}}));
    };
    for namespace in ["mine", "yours"] {
        send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}}));
    }
    for namespace in ["mine", "yours", "cards"] {
        add(namespace, "first");
    }
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let mut core =
        Core::new("cards", SystemClock::shared(), Random::seeded(1), Metrics::new().unwrap(), Arc::new(recorder));
    core.restrict_to(&["yours", "mine"]);
    let both = core.store::<CardView>(&Selection::default());
    let mine = core.store::<CardView>(&Selection { namespace: "mine".to_owned(), ..Selection::default() });
    assert!(!Arc::ptr_eq(&both, &mine), "a cache of one of them is another cache");
    assert!(Arc::ptr_eq(&both, &core.store::<CardView>(&Selection::default())));
    core.store::<NodeView>(&Selection::default());
    let paths: Vec<String> = core.watches().iter().map(|watch| watch.path()).collect();
    assert_eq!(paths, [cards("mine"), cards("yours"), "/api/v1/nodes".to_owned()], "both share the watch of mine");

    let manager = Manager::new(core, client(&server), events, settings(None));
    let core = Arc::clone(manager.core());
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    eventually("complete caches", || core.synced().then_some(())).await;
    let keys = |store: &Store<CardView>| store.read().keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (keys(&both), keys(&mine)),
        (vec!["mine/first".into(), "yours/first".into()], vec!["mine/first".into()])
    );

    // The deletion in one namespace is newer than what the watch of the other shows next, or has not shown yet.
    add("yours", "second");
    send(&server, Method::DELETE, &format!("{}/first", cards("mine")), &json!({}));
    add("mine", "third");
    let expected = ["mine/third", "yours/first", "yours/second"];
    eventually("the changes of both", || (keys(&both) == expected).then_some(())).await;
    core.refresh_metrics();
    let text = core.metrics().text(&[Audience::Runtime]);
    assert!(text.contains(r#"koord_cache_objects{kind="ConfigMap"} 3"#), "{text}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watch_that_is_deferred_asks_nothing_until_it_begins() {
    let server = server();
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n"}}));
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let mut core =
        Core::new("cards", SystemClock::shared(), Random::seeded(1), Metrics::new().unwrap(), Arc::new(recorder));
    let (nodes, _) = (core.store::<NodeView>(&Selection::default()), core.store::<CardView>(&Selection::default()));
    let watch = Arc::clone(core.watches().iter().find(|watch| watch.kind == ResourceKind::NODE).unwrap());
    watch.defer();
    let manager = Manager::new(core, client(&server), events, settings(None));
    let core = Arc::clone(manager.core());
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    eventually("the other cache", || core.synced().then_some(())).await;
    assert_eq!((core.readiness(), core.liveness(), nodes.read().len()), (Ok(()), Ok(()), 0));
    watch.begin();
    assert!(!core.synced(), "it is waited for from now on");
    eventually("the object", || nodes.read().get("n").map(drop)).await;
    eventually("all caches", || core.readiness().ok()).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_named_with_what_helps_and_waited_for() {
    let server = server();
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let mut core =
        Core::new("cards", SystemClock::shared(), Random::seeded(1), Metrics::new().unwrap(), Arc::new(recorder));
    let widgets = core.store::<WidgetView>(&Selection::default());
    let manager = Manager::new(core, client(&server), events, settings(None));
    let core = Arc::clone(manager.core());
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    let refused = "apply the CustomResourceDefinition widgets.example.com with version v1";
    eventually("a reason that helps", || core.readiness().is_err_and(|reason| reason.contains(refused)).then_some(()))
        .await;
    core.watches().iter().for_each(|watch| watch.set_optional("the cutter".to_owned()));
    assert_eq!((core.readiness(), core.synced()), (Ok(()), false), "what may be absent is not waited for");
    assert_eq!(core.watches().iter().find_map(|watch| watch.idle()), Some("the cutter"));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    send(&server, Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    eventually("a complete cache", || core.synced().then_some(())).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    send(&server, Method::POST, "/apis/example.com/v1/namespaces/cards/widgets", &widget);
    eventually("the object", || widgets.read().get("cards/w").map(drop)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A kind that is defined later.
#[derive(Debug, PartialEq)]
struct WidgetView;

impl Projection for WidgetView {
    const KIND: ResourceKind =
        ResourceKind { group: "example.com", version: "v1", kind: "Widget", plural: "widgets", namespaced: true };
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(_: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

#[tokio::test]
async fn the_second_replica_takes_over_when_the_first_gives_the_lease_back() {
    let server = server();
    let leader_election = |identity: &str| LeaderElectionConfig {
        retry: Duration::from_millis(50),
        release: true,
        ..LeaderElectionConfig::new("kube-system", "cards", identity)
    };
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let one = manager(&server, Initial::Stream, Some(leader_election("one")));
    let mut leads = one.leading();
    let one = tokio::spawn(one.run(first.clone()));
    tokio::time::timeout(Duration::from_secs(5), leads.wait_for(|leads| *leads)).await.unwrap().unwrap();

    let two = manager(&server, Initial::Stream, Some(leader_election("two")));
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

#[tokio::test]
async fn a_program_that_loses_the_lease_runs_on_and_leads_again() {
    let server = server();
    let config = LeaderElectionConfig {
        retry: Duration::from_millis(50),
        ..LeaderElectionConfig::new("kube-system", "cards", "one")
    };
    let stop = CancellationToken::new();
    let manager = manager(&server, Initial::Stream, Some(config));
    let mut leads = manager.leading();
    let running = tokio::spawn(manager.run(stop.clone()));
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();

    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cards";
    let now = Timestamp::now();
    let taken = json!({"holderIdentity": "another", "leaseDurationSeconds": 1, "renewTime": format!("{now:.6}")});
    send(&server, Method::PATCH, path, &json!({"spec": taken}));
    tokio::time::timeout(limit, leads.wait_for(|leads| !*leads)).await.unwrap().unwrap();
    assert!(!running.is_finished(), "the process goes on");
    // The other never renews it.
    tokio::time::timeout(limit, leads.wait_for(|leads| *leads)).await.unwrap().unwrap();
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    eventually("a card after the election", || card(&server, "n1")).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// The trial on which the design rests: kube's own decoder can leave objects as text. The runtime reads lines itself
/// because then one buffer serves all events and a broken line can be distinguished from a malformed object.
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

// === what is fetched ===

/// The kind that the API server gave to the object when it sent it.
#[derive(PartialEq)]
struct SentAs(String);

#[derive(Deserialize)]
struct SentWire<'a> {
    kind: String,
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
}

impl<'a> Metadata<'a> for SentWire<'a> {
    const ONLY: bool = true;

    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for SentAs {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = SentWire<'a>;
    type Index = ();

    fn project(wire: SentWire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self(wire.kind))
    }
}

async fn is_sent_as_metadata_alone(initial: Initial) {
    let server = server();
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "listed"}}));
    let (recorder, events) = Recorder::new(SystemClock::shared());
    let (random, metrics) = (Random::seeded(7), Metrics::new().unwrap());
    let mut core = Core::new("cards", SystemClock::shared(), random, metrics, Arc::new(recorder));
    core.set_initial(initial);
    let nodes = core.store::<SentAs>(&Selection::default());
    let stop = CancellationToken::new();
    let running = tokio::spawn(Manager::new(core, client(&server), events, settings(None)).run(stop.clone()));
    let sent_as = |name: &str| nodes.read().get(name).map(|node| node.value.0.clone());
    let listed = eventually("a node that was there", || sent_as("listed")).await;
    send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": "watched"}}));
    let watched = eventually("a node that came", || sent_as("watched")).await;
    assert_eq!([listed, watched], ["PartialObjectMetadata"; 2]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn of_objects_whose_metadata_alone_is_read_nothing_else_is_fetched() {
    is_sent_as_metadata_alone(Initial::Stream).await;
    is_sent_as_metadata_alone(Initial::Pages).await;
}
