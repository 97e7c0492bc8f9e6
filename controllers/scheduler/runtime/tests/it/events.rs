//! Whose events are, and of which objects they speak.

use super::*;

const OTHER: &str = "another-scheduler";

#[tokio::test(start_paused = true)]
async fn events_are_reported_by_the_profile_and_name_the_pod_for_which_another_goes() {
    let stage = Stage::new();
    stage.add_node("only", "2");
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    stage.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
    let add_pod = |name: &str, class: Option<&str>| {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}});
        let spec = json!({"schedulerName": OTHER, "containers": [container], "priorityClassName": class, "terminationGracePeriodSeconds": 0});
        stage.send(Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec}));
    };
    let profile = default_profile(OTHER).unwrap();
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    add_pod("low", None);
    stage.pass(5).await;
    assert_eq!(stage.place("low"), "only");
    add_pod("high", Some("high"));
    stage.pass(5).await;
    let events =
        stage.send(Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events", &Value::Null)["items"].take();
    let event = |reason: &str| {
        let found = events.as_array().unwrap().iter().find(|event| event["reason"] == reason);
        found.unwrap_or_else(|| panic!("no {reason} in {events}")).clone()
    };
    for reason in ["Scheduled", "FailedScheduling", "Preempted"] {
        assert_eq!(event(reason)["reportingController"], json!(OTHER), "{reason}");
    }
    let related = &event("Preempted")["related"];
    assert_eq!((&related["kind"], &related["name"]), (&json!("Pod"), &json!("high")));
    assert_eq!(event("Scheduled")["related"], Value::Null);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_being_deleted_is_reported_as_skipped() {
    let stage = Stage::new();
    stage.add_node("only", "2");
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    let metadata = json!({"name": "going", "finalizers": ["example.com/keep"]});
    stage.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
    stage.send(Method::DELETE, &format!("{PODS}/going"), &json!({"gracePeriodSeconds": 0}));
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(stage.place("going"), "-");
    let all = stage.send(Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events", &Value::Null);
    let shown = |event: &Value| {
        let part = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}: {}", part("type"), part("reason"), part("action"), part("note"))
    };
    let events = all["items"].as_array().unwrap().iter().filter(|event| event["regarding"]["name"] == "going");
    let events: Vec<String> = events.map(shown).collect();
    assert_eq!(events, ["Warning FailedScheduling Scheduling: skip schedule deleting pod: default/going"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}
