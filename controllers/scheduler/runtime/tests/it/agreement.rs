//! A leader that waits until its caches agree with the API server.

use http_body_util::BodyExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use koord_runtime::{metrics::Audience, panics::Place};
use koord_scheduler_runtime::ReadError;
use tokio::sync::watch;

use super::*;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// A client whose watches of pods begin when the gate is open.
fn without_watch_of_pods(server: &Server) -> (Client, watch::Sender<bool>) {
    let (gate, open) = watch::channel(false);
    let client = client(server, move |request| {
        let is_held =
            request.uri().path() == "/api/v1/pods" && request.uri().query().unwrap_or("").contains("watch=true");
        let mut open = open.clone();
        async move {
            if is_held {
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
        }
    });
    (client, gate)
}

/// Whether this is the first question about the collection of a path that a cache is compared with.
fn is_request_for(path: &str, request: &http::Request<Body>) -> bool {
    request.uri().path() == path && request.uri().query().unwrap_or("").contains("limit=1")
}

#[tokio::test(start_paused = true)]
async fn what_the_last_leader_bound_counts_before_anything_is_decided() {
    let stage = Stage::new();
    stage.add_node("only", "2");
    stage.add_pod("a", "2");
    stage.add_pod("b", "2");
    let held = json!({"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": format!("{:.6}", stage.clock.now())});
    stage.send(Method::POST, LEASES, &json!({"metadata": {"name": "koord-scheduler"}, "spec": held}));
    let (client, gate) = without_watch_of_pods(&stage.server);
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let leading = manager.leading();
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": "only"});
    stage.send(Method::POST, &format!("{PODS}/a/binding"), &json!({"metadata": {"name": "a"}, "target": target}));
    stage.pass(20).await;
    assert!(*leading.borrow());
    assert_eq!(stage.place("b"), "-", "nothing is decided while the cache does not know of a");
    gate.send_replace(true);
    stage.pass(2).await;
    assert!(stage.place("b").starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{}", stage.place("b"));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_panic_has_hidden_is_listed_again_before_anything_is_decided() {
    for place in [Place::Projection, Place::Listener] {
        let panics = Arc::new(AtomicBool::new(false));
        let strikes = Arc::clone(&panics);
        let injector: Injector =
            Arc::new(move |at| assert!(at != place || !strikes.load(Ordering::Relaxed), "injected"));
        let stage = Stage { panics: Some(injector), ..Stage::new() };
        stage.add_node("only", "2");
        stage.add_pod("a", "2");
        stage.add_pod("b", "2");
        let held = json!({"holderIdentity": "another", "leaseDurationSeconds": 15, "renewTime": format!("{:.6}", stage.clock.now())});
        stage.send(Method::POST, LEASES, &json!({"metadata": {"name": "koord-scheduler"}, "spec": held}));
        let profile = default_profile("koord-scheduler").unwrap();
        let client = Client::new(stage.server.router(), "default");
        let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run(stop.clone()));
        stage.pass(5).await;
        panics.store(true, Ordering::Relaxed);
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": "only"});
        stage.send(Method::POST, &format!("{PODS}/a/binding"), &json!({"metadata": {"name": "a"}, "target": target}));
        stage.pass(1).await;
        panics.store(false, Ordering::Relaxed);
        stage.pass(24).await;
        let b = stage.place("b");
        assert!(b.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{place:?}: {b}");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}

/// Where a pod is 5 and 30 seconds after a leader has begun in a cluster in which nothing happens, to whom the API server says that its
/// collections of this path are so many revisions newer, and have one object more.
async fn places(path: &'static str, revisions: u64) -> [String; 2] {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let router = stage.server.router();
    let service = service_fn(move |request: http::Request<Body>| {
        let is_compared = is_request_for(path, &request);
        let router = router.clone();
        async move {
            let answer = router.oneshot(request).await?;
            if !is_compared || !answer.status().is_success() {
                return Ok::<_, std::convert::Infallible>(answer);
            }
            let (head, body) = answer.into_parts();
            let mut list: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
            let revision: u64 = list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            list["metadata"]["resourceVersion"] = json!((revision + revisions).to_string());
            if revisions > 1_000_000 {
                list["metadata"]["remainingItemCount"] = json!(1);
            }
            Ok(http::Response::from_parts(head, list.to_string().into()))
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, metrics, _) =
        stage.program_agreeing(Duration::from_secs(20), Client::new(service, "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let soon = stage.place("a");
    stage.pass(25).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    let disagreed = u32::from(soon == "-");
    let text = metrics.text(&[Audience::Runtime]);
    let line = format!("koord_scheduler_cache_disagreements_total {disagreed}");
    assert!(text.lines().any(|known| known == line), "{text}");
    [soon, stage.place("a")]
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_holds_the_same_agrees_though_its_watch_has_not_come_as_far() {
    assert_eq!(places("/api/v1/pods", 1_000_000).await[0], "only");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_stays_behind_delays_the_leader_for_its_time_at_most() {
    assert_eq!(places("/api/v1/pods", 2_000_000).await, ["-", "only"]);
}

#[tokio::test(start_paused = true)]
async fn a_collection_that_cannot_be_read_delays_the_leader_longer_but_not_for_ever() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let router = stage.server.router();
    let service = service_fn(move |request: http::Request<Body>| {
        let is_compared = is_request_for("/api/v1/pods", &request);
        let router = router.clone();
        async move {
            let mut answer = router.oneshot(request).await?;
            if is_compared {
                *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            }
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(5), Client::new(service, "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(25).await;
    assert_eq!(stage.place("a"), "-", "after five times the limit");
    stage.pass(10).await;
    assert_eq!(stage.place("a"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_a_collection_that_is_too_large_no_page_beyond_the_last_is_fetched() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let fetched = Arc::new(AtomicUsize::new(0));
    let (router, pages) = (stage.server.router(), Arc::clone(&fetched));
    let service = service_fn(move |request: http::Request<Body>| {
        let is_first = is_request_for("/api/v1/pods", &request);
        let is_page = request.uri().query().unwrap_or("").contains("spec.nodeName");
        pages.fetch_add(usize::from(is_page), Ordering::Relaxed);
        let router = router.clone();
        async move {
            if !is_first && !is_page {
                return router.oneshot(request).await;
            }
            // The watch never comes as far, and there is always one more page.
            let page = json!({"metadata": {"resourceVersion": "1000000000000", "continue": "more"}, "items": []});
            Ok(http::Response::new(page.to_string().into()))
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) =
        stage.program_agreeing(Duration::from_secs(20), Client::new(service, "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(30).await;
    assert_eq!(fetched.load(Ordering::Relaxed), 50);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn collections_that_are_slow_to_read_do_not_wait_for_each_other() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let client = client(&stage.server, |request| {
        let is_slow = ["/api/v1/pods", "/api/v1/nodes"].iter().any(|path| is_request_for(path, request));
        async move {
            if is_slow {
                tokio::time::sleep(Duration::from_secs(8)).await;
            }
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(7).await;
    assert_eq!(stage.place("a"), "-");
    stage.pass(6).await;
    assert_eq!(stage.place("a"), "only", "one after the other they take 16 s");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_waits_applies_changes_and_answers_that_it_does_not_schedule() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let (gate, open) = watch::channel(false);
    let client = client(&stage.server, move |request| {
        let (is_held, mut open) = (is_request_for("/api/v1/pods", request), open.clone());
        async move {
            if is_held {
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, metrics, reader) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let leading = manager.leading();
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    assert!(*leading.borrow());
    stage.add_node("another", "4");
    stage.add_pod("a", "1");
    stage.pass(3).await;
    let text = metrics.text(&[Audience::Runtime]);
    assert!(text.lines().any(|line| line == r#"scheduler_cache_size{type="nodes"} 2"#), "{text}");
    assert_eq!(reader.get("nodes/only").await, Err(ReadError::NotLeading));
    assert_eq!(stage.place("a"), "-", "nothing is decided yet");
    gate.send_replace(true);
    stage.pass(2).await;
    let place = stage.place("a");
    assert!(["only", "another"].contains(&&*place), "{place}");
    assert!(reader.get("nodes/only").await.is_ok());
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn objects_are_read_no_longer_than_the_watch_takes_to_come_as_far() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let (gate, open) = watch::channel(false);
    let client = client(&stage.server, move |request| {
        let is_matching = is_request_for("/api/v1/pods", request);
        let is_read = request.uri().query().unwrap_or("").contains("spec.nodeName");
        let mut open = open.clone();
        async move {
            if is_matching {
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
            if is_read {
                std::future::pending::<()>().await;
            }
        }
    });
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    // The API server is further than the watch of pods from here on.
    stage.add_node("another", "1");
    gate.send_replace(true);
    stage.pass(3).await;
    assert_eq!(stage.place("a"), "-");
    stage.add_pod("b", "1");
    stage.pass(1).await;
    assert_eq!(stage.place("a"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A client to which one question of a comparison is answered with this instead; and how often each was asked.
fn answered_with(stage: &Stage, path: &'static str, text: &'static str) -> (Client, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let (router, count) = (stage.server.router(), Arc::clone(&requests));
    let service = service_fn(move |request: http::Request<Body>| {
        let is_matching = is_request_for(path, &request);
        count.fetch_add(usize::from(is_matching), Ordering::Relaxed);
        let router = router.clone();
        async move {
            if is_matching {
                return Ok::<_, std::convert::Infallible>(http::Response::new(text.to_owned().into()));
            }
            router.oneshot(request).await
        }
    });
    (Client::new(service, "default"), requests)
}

#[tokio::test(start_paused = true)]
async fn an_empty_collection_as_kube_apiserver_answers_it_holds_up_no_leader() {
    const EMPTY: &str = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":null}"#;
    let stage = Stage::new();
    let listed = |path: &str| {
        let mut request = ApiRequest::new(Method::GET, path, String::new());
        request.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1".to_owned();
        match stage.server.with_core(|core| core.handle(&request)) {
            envtest::server::Outcome::Done(answer) => serde_json::from_slice::<Value>(&answer.body).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(listed("/api/v1/persistentvolumes")["items"], Value::Null, "the embedded server answers so too");
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let (client, requests) = answered_with(&stage, "/api/v1/persistentvolumes", EMPTY);
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(2).await;
    assert_eq!((stage.place("a").as_str(), requests.load(Ordering::Relaxed)), ("only", 1));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_list_is_requested_rarely() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let (client, requests) = answered_with(&stage, "/api/v1/persistentvolumes", r#"{"metadata":{},"items":{}}"#);
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_agreeing(Duration::from_secs(20), client, profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(60).await;
    let requests = requests.load(Ordering::Relaxed);
    assert!((7..=14).contains(&requests), "{requests} times within a minute");
    stop.cancel();
    running.await.unwrap().unwrap();
}
