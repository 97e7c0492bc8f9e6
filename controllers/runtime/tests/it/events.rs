//! Events as the API server stores them. On paused time, over kube's client and the embedded server in the same process.

use std::{sync::Arc, time::Duration};

use axum::{Router, http::StatusCode, routing::any};
use envtest::shell::Server;
use http::Method;
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    clock::{ScaledClock, SharedClock},
    events::{Event, EventSink, EventType, Regarded},
    key::ObjectKey,
    manager::Manager,
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
    uid::Uid,
};
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::manager::{send, server, settings};

const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const CORE: &str = "/api/v1/namespaces/default/events";

fn odd_node() -> Event {
    let about = Regarded { kind: ResourceKind::NODE, key: ObjectKey::cluster("n1"), uid: Uid::from("u") };
    Event::new(about, EventType::Warning, "Decoding", "Odd", "the node is odd".to_owned())
}

/// A program that does nothing but record events.
struct Program {
    recorder: Arc<Recorder>,
    stop: CancellationToken,
}

impl Program {
    fn start(client: Client) -> Self {
        let clock: SharedClock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let recorder = Arc::new(recorder);
        let sink = Arc::clone(&recorder) as Arc<dyn EventSink>;
        let core = Core::new("test", Arc::clone(&clock), Random::seeded(7), Metrics::new().unwrap(), sink);
        let stop = CancellationToken::new();
        tokio::spawn(Manager::timed_by(clock, core, client, events, settings(None)).run(stop.clone()));
        Self { recorder, stop }
    }

    async fn record(&self, times: u32) {
        for _ in 0..times {
            self.recorder.record("card-controller", odd_node());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn only(server: &Server, path: &str) -> Value {
    let list = send(server, Method::GET, path, &Value::Null);
    let [event] = list["items"].as_array().unwrap().as_slice() else { panic!("{list}") };
    event.clone()
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_one_series_that_both_groups_show() {
    let server = server();
    let program = Program::start(Client::new(server.router(), "default"));
    program.record(1).await;
    assert_eq!(only(&server, NEW)["series"], Value::Null);
    program.record(4).await;
    assert_eq!(only(&server, NEW)["series"]["count"], 2, "a series is written when it begins");
    tokio::time::sleep(Duration::from_mins(13)).await;
    let event = only(&server, NEW);
    assert_eq!(event["series"]["count"], 5, "and when it is finished");
    assert!(event["series"]["lastObservedTime"].as_str().unwrap().starts_with("1970-01-01T00:00:04."), "{event}");
    assert_eq!((&event["regarding"]["name"], &event["note"]), (&json!("n1"), &json!("the node is odd")));
    assert_eq!(event["reportingController"], "card-controller");
    let same = only(&server, CORE);
    assert_eq!(same["metadata"], event["metadata"]);
    assert_eq!((&same["involvedObject"], &same["message"]), (&event["regarding"], &event["note"]));
    assert_eq!((&same["reportingComponent"], &same["series"]), (&json!("card-controller"), &event["series"]));
    program.record(1).await;
    let events = send(&server, Method::GET, NEW, &Value::Null);
    assert_eq!(events["items"].as_array().unwrap().len(), 2, "a finished series begins no more");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_deleted_is_written_anew() {
    let server = server();
    let program = Program::start(Client::new(server.router(), "default"));
    program.record(1).await;
    let name = only(&server, NEW)["metadata"]["name"].as_str().unwrap().to_owned();
    send(&server, Method::DELETE, &format!("{NEW}/{name}"), &json!({}));
    program.record(1).await;
    assert_ne!(only(&server, NEW)["metadata"]["name"], name);
}

#[tokio::test(start_paused = true)]
async fn a_role_that_grants_events_of_the_core_group_alone_is_enough() {
    let server = server();
    let forbidden = async || {
        let message = r#"events.events.k8s.io is forbidden: User "x" cannot create resource "events" in API group "events.k8s.io""#;
        (StatusCode::FORBIDDEN, json!({"kind": "Status", "reason": "Forbidden", "message": message}).to_string())
    };
    let gate = Router::new().route("/apis/events.k8s.io/{*rest}", any(forbidden)).fallback_service(server.router());
    let program = Program::start(Client::new(gate, "default"));
    program.record(3).await;
    let event = only(&server, CORE);
    assert_eq!((&event["message"], &event["series"]["count"]), (&json!("the node is odd"), &json!(2)));
}
