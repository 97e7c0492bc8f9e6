//! What is written to bind a pod.

use std::sync::atomic::{AtomicBool, Ordering};

use koord_config::scheduler::SchedulerConfiguration;
use koord_scheduler_plugins::build;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::*;

fn gangs() -> Profile {
    const SHIPPED: &str = include_str!("../../../../../bins/koord-scheduler/koord-scheduler.config.yaml");
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
async fn a_binding_that_the_api_server_refuses_is_said_in_the_condition_and_tried_again() {
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
    let (manager, _, asking) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    // The condition that says why it has no node is on its way when there is a node for it.
    stage.pass(3).await;
    stage.add_node("large", "4");
    stage.pass(3).await;
    let attempts = asking.ask("verdicts/default/a").await.unwrap()["attempts"].clone();
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
async fn a_pod_that_has_got_another_node_meanwhile_is_not_said_to_have_none() {
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
