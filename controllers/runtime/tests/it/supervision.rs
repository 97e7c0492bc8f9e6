//! What panics starts again, what cannot go on ends the program, and a leader that lost its lease starts no write.
//! On paused time, over kube's client and the embedded API server in the same process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::Request,
    http::StatusCode,
    middleware::{Next, from_fn},
    response::IntoResponse,
};
use envtest::shell::Server;
use http::Method;
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    cache::{Revision, Sizes},
    clock::{ScaledClock, SharedClock},
    error::Fault,
    key::ObjectKey,
    lease::LeaderElectionConfig,
    manager::{Manager, RunError, Settings},
    metrics::{Audience, Metrics},
    panics::{Injector, Place},
    projection::DecodeError,
    random::Random,
    recorder::Recorder,
    reflector::Selection,
    store::Sink,
    tasks::TaskError,
    uid::Uid,
    write::{Action, Deletion, Write},
};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    manager::{send, server, settings},
    name_cards::{COMPONENT, NameCards, NodeView},
};

fn manager(server: &Server, client: Client, injector: Injector, settings: Settings) -> Manager {
    let clock: SharedClock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
    for name in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        send(server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": name}}));
    }
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let mut core =
        Core::new("cards", Arc::clone(&clock), Random::seeded(7), Metrics::new().unwrap(), Arc::new(recorder));
    core.inject_panics(injector);
    core.add(NameCards::SPEC, COMPONENT, NameCards::wire).unwrap();
    Manager::timed_by(clock, core, client, events, settings)
}

fn cards(server: &Server) -> usize {
    let cards = send(server, Method::GET, "/api/v1/namespaces/cards/configmaps", &Value::Null);
    cards["items"].as_array().unwrap().len()
}

/// Panics at a place the first so many times that it is passed.
fn at_first(place: Place, times: u32) -> Injector {
    let left = AtomicU32::new(times);
    Arc::new(move |at| {
        let strikes =
            at == place && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        assert!(!strikes, "injected");
    })
}

#[tokio::test(start_paused = true)]
async fn what_panics_at_first_does_its_work_in_the_end_and_is_counted() {
    let cases = [
        (Place::Projection, "projection", "watch Node"),
        (Place::Listener, "listener", "watch Node"),
        (Place::Reconcile, "reconcile", "controller name-cards"),
        (Place::Written, "written", "controller name-cards"),
        (Place::Execution, "execution", "controller name-cards"),
        (Place::Watch, "task", "watch Node"),
        (Place::Election, "task", "leader election"),
        (Place::Events, "task", "events"),
        (Place::Task, "task", "watch Node"),
    ];
    for (place, label, task) in cases {
        let server = server();
        let settings = settings(Some(LeaderElectionConfig::new("kube-system", "cards", "one")));
        let client = Client::new(server.router(), "default");
        let manager = manager(&server, client, at_first(place, 3), settings);
        let (core, health, stop) = (Arc::clone(manager.core()), manager.health().clone(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        // A watch is opened anew within five minutes.
        tokio::time::sleep(Duration::from_mins(8)).await;
        assert_eq!(cards(&server), 6, "{place:?}");
        assert_eq!(health.is_ready(), Ok(()), "{place:?}");
        let text = core.metrics().text(&[Audience::Runtime]);
        let counted = format!(r#"koord_panics_total{{place="{label}",task="{task}"}}"#);
        assert!(text.contains(&counted), "{counted} is missing in\n{text}");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_go_on_ends_the_program_with_its_name() {
    let server = server();
    let client = Client::new(server.router(), "default");
    let manager = manager(&server, client, at_first(Place::Watch, u32::MAX), settings(None));
    let tasks = manager.tasks().clone();
    let ended = tokio::time::timeout(Duration::from_mins(10), manager.run(CancellationToken::new())).await.unwrap();
    let Err(RunError::Task(TaskError::GivenUp { task, last })) = ended else { panic!("{ended:?}") };
    assert_eq!(last.to_string(), "panicked: injected; please report it");
    assert!(["watch Node", "watch ConfigMap"].contains(&task.as_str()), "{task}");
    assert!(tasks.alive().is_err(), "liveness knows");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_word_from_the_server_makes_the_program_unready_but_not_dead() {
    let server = server();
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let router = server.router().layer(from_fn(move |request: Request, next: Next| {
        let is_down = down.load(Ordering::Relaxed);
        async move { if is_down { StatusCode::SERVICE_UNAVAILABLE.into_response() } else { next.run(request).await } }
    }));
    let client = Client::new(router, "default");
    let manager = manager(&server, client, Arc::new(|_| {}), settings(None));
    let (core, health, stop) = (Arc::clone(manager.core()), manager.health().clone(), CancellationToken::new());
    assert_eq!(health.is_ready(), Err("caches: caches are not complete: Node, ConfigMap".to_owned()));
    let running = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((health.is_ready(), core.liveness()), (Ok(()), Ok(())), "in a quiet cluster");
    is_down.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(25)).await;
    let reason = "caches: no contact with the API server for 15 minutes: Node, ConfigMap";
    assert_eq!((health.is_ready(), core.liveness()), (Err(reason.to_owned()), Ok(())));
    is_down.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(health.is_ready(), Ok(()));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_server_answers_instead_of_objects_is_in_the_words_of_readiness() {
    for (code, words) in [
        (StatusCode::INTERNAL_SERVER_ERROR, "Node: the API server answered 500: <html>no"),
        (StatusCode::OK, "Node: this is not an event: <html>no"),
    ] {
        let server = server();
        let is_broken = Arc::new(AtomicBool::new(true));
        let broken = Arc::clone(&is_broken);
        let router = server.router().layer(from_fn(move |request: Request, next: Next| {
            let is_broken = broken.load(Ordering::Relaxed);
            async move { if is_broken { (code, "<html>no").into_response() } else { next.run(request).await } }
        }));
        let manager = manager(&server, Client::new(router, "default"), Arc::new(|_| {}), settings(None));
        let (health, stop) = (manager.health().clone(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        tokio::time::sleep(Duration::from_mins(1)).await;
        let reason = health.is_ready().unwrap_err();
        assert!(reason.starts_with("caches: caches are not complete: Node, ConfigMap\n"), "{reason}");
        assert!(reason.lines().any(|line| line == words), "{reason}");
        is_broken.store(false, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_eq!(health.is_ready(), Ok(()));
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

/// The limit lets one write through in ten seconds, and the lease is lost after fifteen: of six writes that are due, those
/// that have waited until then are not started, although their workers were already under way.
#[tokio::test(start_paused = true)]
async fn a_write_that_waited_until_the_lease_was_lost_is_not_started() {
    let server = server();
    let frozen = Arc::new(AtomicBool::new(false));
    let is_frozen = Arc::clone(&frozen);
    let router = server.router().layer(from_fn(move |request: Request, next: Next| {
        let refused = request.uri().path().contains("/leases") && is_frozen.load(Ordering::Relaxed);
        async move { if refused { StatusCode::INTERNAL_SERVER_ERROR.into_response() } else { next.run(request).await } }
    }));
    let leader_election = LeaderElectionConfig {
        lease: Duration::from_secs(20),
        renew: Duration::from_secs(15),
        ..LeaderElectionConfig::new("kube-system", "cards", "one")
    };
    // Two lists or watches and one write at once; then the limit.
    let limit = (0.1, 3);
    let settings =
        Settings { requests_per_second: limit.0, requests_burst: limit.1, ..settings(Some(leader_election)) };
    let manager = manager(&server, Client::new(router, "default"), Arc::new(|_| {}), settings);
    let (mut leads, stop) = (manager.leading(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    leads.wait_for(|leads| *leads).await.unwrap();
    frozen.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(18)).await;
    let written = cards(&server);
    assert!(written < 6 && !*leads.borrow(), "{written} cards while it led");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(cards(&server), written, "a write was started without the lead");
    frozen.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(cards(&server), 6, "the lead came back");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Between two terms the task ends, and the Lease is released after it.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_leader_is_drained_before_the_lease_is_released() {
    let server = server();
    let leader_election = Some(LeaderElectionConfig::new("kube-system", "cards", "one"));
    let client = Client::new(server.router(), "default");
    let mut manager = manager(&server, client, Arc::new(|_| {}), settings(leader_election));
    let holder = {
        let server = server.clone();
        move || {
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cards";
            send(&server, Method::GET, path, &Value::Null)["spec"]["holderIdentity"].clone()
        }
    };
    let at_its_end = Arc::new(std::sync::Mutex::new(None));
    let (seen, look) = (Arc::clone(&at_its_end), holder.clone());
    manager.while_leading("rebalance", move |_, end| {
        let (seen, look) = (Arc::clone(&seen), look.clone());
        async move {
            end.cancelled().await;
            tokio::time::sleep(Duration::from_secs(3)).await;
            *seen.lock().unwrap() = Some(look());
        }
    });
    let (mut leads, stop) = (manager.leading(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    leads.wait_for(|leads| *leads).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(at_its_end.lock().unwrap().clone(), Some(json!("one")), "the lease was still held when the task ended");
    assert_eq!(holder(), json!(""), "and is released now");
}

/// What effects of controllers send: before the first term and after the last nothing is started.
#[tokio::test(start_paused = true)]
async fn what_only_the_leader_may_write_is_not_started_without_the_lead() {
    let server = server();
    let leader_election = Some(LeaderElectionConfig::new("kube-system", "cards", "one"));
    let client = Client::new(server.router(), "default");
    let manager = manager(&server, client, Arc::new(|_| {}), settings(leader_election));
    let api = manager.leader_api();
    let evict = async |name: &str| {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let made = send(&server, Method::POST, "/api/v1/namespaces/default/pods", &pod);
        let action = Action::Evict(Deletion::of(Uid::from(made["metadata"]["uid"].as_str().unwrap())));
        let write = Write { kind: ResourceKind::POD, key: ObjectKey::new("default", name), action };
        api.write(&write).await.map(drop).map_err(|error| error.to_string())
    };
    let refused = |result: Result<(), String>| result.is_err_and(|error| error.contains("does not lead any more"));
    assert!(refused(evict("a").await));
    let (mut leads, stop) = (manager.leading(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    leads.wait_for(|leads| *leads).await.unwrap();
    assert_eq!(evict("b").await, Ok(()));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(refused(evict("c").await));
}

/// Bindings, evictions and deletions as the server understands them, with their preconditions.
#[tokio::test(start_paused = true)]
async fn pods_are_bound_evicted_and_deleted_only_as_decided() {
    let server = server();
    let client = Client::new(server.router(), "default");
    let manager = manager(&server, client, Arc::new(|_| {}), settings(None));
    let path = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let create = |name: &str| {
        let made = send(&server, Method::POST, path, &pod(name));
        (Uid::from(made["metadata"]["uid"].as_str().unwrap()), ObjectKey::new("default", name))
    };
    let api = manager.api();
    let write = async |key: &ObjectKey, action| {
        let written = api.write(&Write { kind: ResourceKind::POD, key: key.clone(), action }).await;
        written.map(drop).map_err(|error| error.fault)
    };
    let stored = |key: &ObjectKey| send(&server, Method::GET, &format!("{path}/{}", key.name()), &Value::Null);

    let (uid, key) = create("a");
    let bind = |uid: &str| Action::Bind {
        uid: uid.into(),
        node: "n1".to_owned(),
        annotations: [("a".to_owned(), "b".to_owned())].into(),
    };
    assert_eq!(write(&key, bind("another")).await, Err(Fault::Api), "another pod of this name");
    assert_eq!(write(&key, bind(&uid.to_string())).await, Ok(()));
    let bound = stored(&key);
    assert_eq!((&bound["spec"]["nodeName"], &bound["metadata"]["annotations"]["a"]), (&json!("n1"), &json!("b")));
    assert_eq!(write(&key, bind(&uid.to_string())).await, Err(Fault::Api), "it is bound already");

    let mut running = stored(&key);
    running["status"]["phase"] = "Running".into();
    let update = |object: &Value| Action::Update { subresource: "status", object: object.clone() };
    assert_eq!(write(&key, update(&running)).await, Ok(()));
    assert_eq!(stored(&key)["status"]["phase"], "Running");
    assert_eq!(write(&key, update(&running)).await, Err(Fault::Api), "decided on an old revision");

    let stale = Deletion::of(uid.clone()).at(Revision(1));
    assert_eq!(write(&key, Action::Delete(stale)).await, Err(Fault::Api));
    let slowly = Deletion::of(uid).within(Duration::from_secs(7));
    assert_eq!(write(&key, Action::Delete(slowly)).await, Ok(()));
    assert_eq!(stored(&key)["metadata"]["deletionGracePeriodSeconds"], 7);

    let (uid, key) = create("b");
    assert_eq!(write(&key, Action::Evict(Deletion::of("another".into()))).await, Err(Fault::Api));
    assert_eq!(write(&key, Action::Evict(Deletion::of(uid))).await, Ok(()));
    assert_eq!(stored(&key)["code"], 404);
}

/// A sink that is no cache shares the watch of a cache.
#[tokio::test(start_paused = true)]
async fn one_watch_feeds_caches_and_other_sinks() {
    #[derive(Default)]
    struct Names(std::sync::Mutex<Vec<String>>, AtomicBool);

    impl Sink for Names {
        fn upsert(&self, raw: &str) -> Result<Revision, DecodeError> {
            let object: Value = serde_json::from_str(raw).map_err(|error| DecodeError::new("object", error))?;
            self.0.lock().unwrap().push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            Revision::parse(object["metadata"]["resourceVersion"].as_str().unwrap_or_default())
        }

        fn remove(&self, raw: &str) -> Result<Revision, DecodeError> {
            self.upsert(raw)
        }

        fn begin_list(&self, _: bool) {}

        fn end_list(&self) {
            self.1.store(true, Ordering::Relaxed);
        }

        fn synced(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }

        fn sizes(&self) -> Sizes {
            Sizes::default()
        }
    }

    let server = server();
    for name in ["n1", "n2"] {
        send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": name}}));
    }
    let clock: SharedClock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
    let (recorder, events) = Recorder::new(Arc::clone(&clock));
    let mut core =
        Core::new("cards", Arc::clone(&clock), Random::seeded(7), Metrics::new().unwrap(), Arc::new(recorder));
    let names = Arc::new(Names::default());
    let nodes = core.store::<NodeView>(&Selection::default());
    core.sink(ResourceKind::NODE, &Selection::default(), |_| Arc::clone(&names) as _);
    assert_eq!(core.watches().len(), 1);
    let stop = CancellationToken::new();
    let manager = Manager::timed_by(clock, core, Client::new(server.router(), "default"), events, settings(None));
    let running = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((nodes.read().len(), names.0.lock().unwrap().clone()), (2, vec!["n1".to_owned(), "n2".to_owned()]));
    stop.cancel();
    running.await.unwrap().unwrap();
}
