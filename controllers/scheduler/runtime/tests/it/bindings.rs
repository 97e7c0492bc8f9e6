//! What is written to bind a pod.

use std::sync::atomic::{AtomicBool, Ordering};

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_assembly::build;
use koord_types::{
    node_resource_topology::{v1alpha1, v1alpha2},
    reservation::Reservation,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{explanations::profile_with, *};

pub(crate) fn gangs() -> Profile {
    const SHIPPED: &str = include_str!("../../../../../config/koord-scheduler.config.yaml");
    let configuration = SchedulerConfiguration::of(&koord_resource::yaml::parse(SHIPPED).unwrap()).unwrap();
    build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile
}

impl Stage {
    fn add_member(&self, name: &str, annotations: &Value) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        let metadata = json!({"name": name, "annotations": annotations});
        self.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_are_written_by_the_binding_and_what_it_cannot_write_before() {
    const COUNT: &str = "scheduling.koordinator.sh/bind-gang-member-count";
    let stage = Stage::new();
    stage.add_node("only", "8");
    let gang = json!({"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"});
    stage.add_member("a", &gang);
    stage.add_member("b", &gang);
    // An annotation of an earlier life is to be removed, which no binding does.
    stage.add_member("alone", &json!({COUNT: "7"}));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let client = client(&stage.server, move |request| {
        if request.method() != Method::GET && request.uri().path().starts_with(PODS) {
            let path = request.uri().path().trim_start_matches(PODS).to_owned();
            seen.lock().push(format!("{} {path}", request.method()));
        }
        async {}
    });
    let stop = CancellationToken::new();
    let (manager, ..) = stage.program(client, gangs(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(["a", "b", "alone"].map(|name| stage.place(name)), ["only"; 3].map(str::to_owned));
    let annotation = |name: &str| {
        stage.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null)["metadata"]["annotations"][COUNT].clone()
    };
    assert_eq!(["a", "b", "alone"].map(annotation), [json!("2"), json!("2"), Value::Null]);
    let mut requests = requests.lock().clone();
    requests.sort();
    assert_eq!(requests, ["PATCH /alone", "POST /a/binding", "POST /alone/binding", "POST /b/binding"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_the_api_server_refuses_is_reported_in_the_condition_and_tried_again() {
    let stage = Stage::new();
    stage.add_node("only", "8");
    stage.add_pod("a", "1");
    stage.send(Method::PATCH, &format!("{PODS}/a/status"), &json!({"status": {"nominatedNodeName": "only"}}));
    let takes_bindings = Arc::new(AtomicBool::new(false));
    let takes = Arc::clone(&takes_bindings);
    let is_taken = move |path: &str| !path.contains("/binding") || takes.load(Ordering::Relaxed);
    let client = rerouted(&stage.server, move |path| is_taken(path).then(|| path.to_owned()));
    let stop = CancellationToken::new();
    let (manager, ..) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(3).await;
    let said = stage.place("a");
    assert!(said.starts_with("running Bind plugin \"DefaultBinder\": "), "{said}");
    let pod = stage.send(Method::GET, &format!("{PODS}/a"), &Value::Null);
    let condition = &pod["status"]["conditions"][0];
    assert_eq!(
        (&condition["reason"], &condition["observedGeneration"]),
        (&json!("SchedulerError"), &json!(1)),
        "{pod}"
    );
    assert_eq!(pod["status"].get("nominatedNodeName"), None, "no room is made for it any more");
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    assert_eq!(
        (&events["items"][0]["reason"], &events["items"][0]["message"]),
        (&json!("FailedScheduling"), &json!(said))
    );

    takes_bindings.store(true, Ordering::Relaxed);
    stage.pass(20).await;
    assert_eq!(stage.place("a"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_waits_for_its_turn_is_not_sent_when_its_pod_has_ended() {
    let stage = Stage::new();
    stage.add_node("small", "1");
    stage.add_pod("a", "2");
    let (gate, open) = watch::channel(false);
    let bindings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bindings);
    let client = client(&stage.server, move |request| {
        let path = request.uri().path();
        if path.ends_with("/binding") {
            seen.lock().push(path.to_owned());
        }
        let (is_held, mut open) = (path == format!("{PODS}/a/status"), open.clone());
        async move {
            if is_held {
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
        }
    });
    let stop = CancellationToken::new();
    let (manager, _, reader) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    // The condition that says why it has no node is on its way when there is a node for it.
    stage.pass(3).await;
    stage.add_node("large", "4");
    stage.pass(3).await;
    let attempts = reader.get("verdicts/default/a").await.unwrap()["attempts"].clone();
    assert_eq!((&attempts[0]["result"], &attempts[0]["node"]), (&json!("placed"), &json!("large")), "{attempts}");
    stage.send(Method::PATCH, &format!("{PODS}/a/status"), &json!({"status": {"phase": "Failed"}}));
    stage.pass(1).await;
    gate.send_replace(true);
    stage.add_pod("b", "4");
    stage.pass(3).await;
    assert_eq!((stage.place("b").as_str(), bindings.lock().clone()), ("large", vec![format!("{PODS}/b/binding")]));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_got_another_node_meanwhile_is_not_reported_as_unscheduled() {
    let stage = Stage::new();
    stage.add_node("only", "8");
    stage.add_node("other", "1");
    stage.add_pod("a", "2");
    let server = stage.server.clone();
    let client = client(&stage.server, move |request| {
        let path = format!("{PODS}/a/binding");
        if request.uri().path() == path {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": "other"});
            let binding = json!({"metadata": {"name": "a"}, "target": target}).to_string();
            server.with_core(|core| drop(core.handle(&ApiRequest::new(Method::POST, &path, binding))));
        }
        std::future::ready(())
    });
    let stop = CancellationToken::new();
    let (manager, ..) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let pod = stage.send(Method::GET, &format!("{PODS}/a"), &Value::Null);
    let condition = &pod["status"]["conditions"][0];
    assert_eq!((&pod["spec"]["nodeName"], &condition["status"]), (&json!("other"), &json!("True")), "{pod}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_condition_keeps_the_time_since_which_it_holds() {
    let stage = Stage::new();
    stage.add_node("n1", "1");
    stage.add_pod("waits", "2");
    let condition = || {
        let pod = stage.send(Method::GET, &format!("{PODS}/waits"), &Value::Null);
        let condition = &pod["status"]["conditions"][0];
        let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        (text("message")[..4].to_owned(), text("lastTransitionTime"))
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    let (first, since) = condition();
    assert!(first == "0/1 " && !since.is_empty(), "{first} {since}");
    // The node is too small to wake the pod, which is tried after five minutes all the same.
    stage.add_node("n2", "1");
    stage.pass(310).await;
    assert_eq!(condition(), ("0/2 ".to_owned(), since), "it has no node since then");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_ends_while_it_is_bound_does_not_come_back() {
    const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
    let stage = Stage::new();
    let definition = custom_resource_definition(&[Declared::of::<Reservation>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    stage.add_node("only", "4");
    let (gate, open) = watch::channel(false);
    let held = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&held);
    let client = client(&stage.server, move |request| {
        let path = request.uri().path();
        let is_held = path.starts_with(RESERVATIONS) && path.ends_with("/status");
        if is_held && !*open.borrow() {
            seen.lock().push(path.trim_start_matches(RESERVATIONS).to_owned());
        }
        let mut open = open.clone();
        async move {
            if is_held {
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
        }
    });
    let stop = CancellationToken::new();
    let (manager, ..) = stage.program(client, profile_with(&["Reservation"]), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    for name in ["changed", "ended"] {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
        let template = json!({"spec": {"schedulerName": "koord-scheduler", "containers": [container]}});
        let owners = json!([{"labelSelector": {"matchLabels": {"app": "web"}}}]);
        let reservation = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": name}, "spec": {"template": template, "owners": owners, "ttl": "1h"}});
        stage.send(Method::POST, RESERVATIONS, &reservation);
    }
    stage.pass(3).await;
    let mut bindings = held.lock().clone();
    bindings.sort();
    assert_eq!(bindings, ["/changed/status", "/ended/status"], "both are on their way");
    let path = |name: &str| format!("{RESERVATIONS}/{name}");
    stage.send(Method::PATCH, &path("changed"), &json!({"metadata": {"annotations": {"note": "1"}}}));
    stage.send(Method::PATCH, &format!("{}/status", path("ended")), &json!({"status": {"phase": "Failed"}}));
    gate.send_replace(true);
    stage.pass(3).await;
    let known = |name: &str| {
        let status = stage.send(Method::GET, &path(name), &Value::Null)["status"].clone();
        format!("{} {}", status["phase"], status["nodeName"])
    };
    assert_eq!(["changed", "ended"].map(known), [r#""Available" "only""#, r#""Failed" null"#]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_with_cpus_is_bound_by_two_writes_without_a_conflict() {
    const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let stage = Stage::new();
    let versions = [Declared::of::<v1alpha1::NodeResourceTopology>(), Declared::of::<v1alpha2::NodeResourceTopology>()];
    stage.send(Method::POST, DEFINITIONS, &custom_resource_definition(&versions, Hardening::Hardened));
    let definition = custom_resource_definition(&[Declared::of::<Reservation>()], Hardening::Hardened);
    stage.send(Method::POST, DEFINITIONS, &definition);
    stage.add_node("only", "8");
    let cpus: Vec<Value> = (0..8).map(|id| json!({"id": id, "core": id / 2, "node": 0, "socket": 0})).collect();
    let cpus = json!({"detail": cpus}).to_string();
    let cpu = json!({"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"});
    let zones = json!([{"name": "node-0", "type": "Node", "resources": [cpu]}]);
    let metadata = json!({"name": "only", "annotations": {"node.koordinator.sh/cpu-topology": cpus}});
    let report = json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": metadata, "topologyPolicies": [], "zones": zones});
    stage.send(Method::POST, "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies", &report);
    let writes = Arc::new(Mutex::new(Vec::new()));
    let (seen, router) = (Arc::clone(&writes), stage.server.router());
    let service = service_fn(move |request: http::Request<Body>| {
        let (seen, router) = (Arc::clone(&seen), router.clone());
        async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let answer = router.oneshot(request).await;
            if method != Method::GET && path.starts_with(RESERVATIONS) {
                let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
                seen.lock().push(format!("{method} {} {code}", path.trim_start_matches(RESERVATIONS)));
            }
            answer
        }
    });
    let stop = CancellationToken::new();
    let profile = profile_with(&["Reservation", "NodeNUMAResource"]);
    let (manager, ..) = stage.program(Client::new(service, "default"), profile, "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let resources = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}});
    let container = json!({"name": "c", "image": "i", "resources": resources});
    let spec = json!({"schedulerName": "koord-scheduler", "priority": 9500, "containers": [container]});
    let template = json!({"metadata": {"labels": {"koordinator.sh/qosClass": "LSR"}}, "spec": spec});
    let owners = json!([{"labelSelector": {"matchLabels": {"app": "web"}}}]);
    let reservation = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
        "metadata": {"name": "cpus"}, "spec": {"template": template, "owners": owners, "ttl": "1h"}});
    stage.send(Method::POST, RESERVATIONS, &reservation);
    stage.pass(3).await;
    let bound = stage.send(Method::GET, &format!("{RESERVATIONS}/cpus"), &Value::Null);
    assert_eq!(bound["status"]["phase"], "Available", "{bound}");
    assert!(bound["metadata"]["annotations"]["scheduling.koordinator.sh/resource-status"].is_string(), "{bound}");
    assert_eq!(writes.lock().clone(), ["PATCH /cpus 200", "PATCH /cpus/status 200"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}
