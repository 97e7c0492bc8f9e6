//! The whole program with a policy of kubernetes-sigs/descheduler, on the embedded API server and in virtual time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use envtest::{cluster::standard_server, environment::TimedEnvironment};
use http::Method;
use jiff::Timestamp;
use koord_configuration::Source;
use koord_descheduler::{Settings, run_with};
use koord_descheduler_assembly::Configuration;
use koord_program::Dependencies;
use koord_runtime::{
    clock::{ScaledClock, SharedClock},
    manager::ListenAddress,
    random::Random,
};
use kube::Client;
use programs::free;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const START: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// A cluster with two nodes, of which one has a taint that its pod does not tolerate.
async fn cluster() -> (Client, SharedClock) {
    let clock = ScaledClock::shared(START, 1.0);
    let time = Arc::clone(&clock);
    let environment = TimedEnvironment::new(1, move || time.now());
    let client = Client::new(standard_server(Box::new(environment)).unwrap().router(), "default");
    let taint = json!([{"key": "maintenance", "effect": "NoSchedule"}]);
    for (name, taints) in [("a", taint), ("b", json!([]))] {
        let node = json!({"metadata": {"name": name}, "spec": {"taints": taints}});
        send(&client, Method::POST, "/api/v1/nodes", &node).await;
    }
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true});
    let pod = json!({
        "metadata": {"name": "web-1", "ownerReferences": [owner]},
        "spec": {"nodeName": "a", "containers": [{"name": "main", "image": "web:1"}]},
    });
    send(&client, Method::POST, "/api/v1/namespaces/default/pods", &pod).await;
    (client, clock)
}

fn dependencies(client: &Client, clock: &SharedClock) -> Dependencies {
    Dependencies {
        client: client.clone(),
        api_host: "cluster".to_owned(),
        clock: Arc::clone(clock),
        random: Random::seeded(2),
    }
}

async fn send(client: &Client, method: Method, path: &str, object: &Value) -> Value {
    let body = if object.is_null() { Vec::new() } else { object.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    client.request(request.body(body).unwrap()).await.unwrap()
}

/// The names of the pods, without those that are being deleted, and the reasons of the events about pods.
async fn pods_and_events(client: &Client) -> (Vec<String>, Vec<String>) {
    let texts = |list: &Value, of: &dyn Fn(&Value) -> Option<String>| -> Vec<String> {
        list["items"].as_array().unwrap().iter().filter_map(of).collect()
    };
    let pods = send(client, Method::GET, "/api/v1/namespaces/default/pods", &Value::Null).await;
    let is_there = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    let names = texts(&pods, &|pod| is_there(pod).then(|| pod["metadata"]["name"].as_str().unwrap().to_owned()));
    let events = send(client, Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events", &Value::Null).await;
    (names, texts(&events, &|event| Some(event["reason"].as_str().unwrap().to_owned())))
}

fn configuration(policy: &str, flags: &Value) -> Configuration {
    let source = Source::new("policy.yaml", policy);
    let lay_over = |document: &mut Value| {
        for (field, value) in flags.as_object().unwrap() {
            document[field] = value.clone();
        }
    };
    Configuration::with_flags(&source.parse().unwrap(), &source, lay_over).unwrap()
}

const POLICIES: [&str; 2] = [
    "\
apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  RemovePodsViolatingNodeTaints: {enabled: true}
",
    "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
",
];

#[tokio::test(start_paused = true)]
async fn a_policy_without_an_interval_evicts_by_the_eviction_api_and_the_program_ends() {
    for policy in POLICIES {
        let (client, clock) = cluster().await;
        let configured = configuration(policy, &json!({"leaderElection": {"leaderElect": false}}));
        let run = run_with(
            Settings::within(configured).unwrap(),
            dependencies(&client, &clock),
            Some(clock),
            CancellationToken::new(),
        );
        tokio::time::timeout(Duration::from_mins(1), run).await.expect("it runs on").unwrap();
        let (pods, events) = pods_and_events(&client).await;
        assert!(pods.is_empty() && events.contains(&"Descheduled".to_owned()), "{policy}{pods:?} {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_with_an_interval_goes_on_and_evicts_nothing() {
    let (client, clock) = cluster().await;
    let flags = json!({"leaderElection": {"leaderElect": false}, "dryRun": true, "deschedulingInterval": "10s"});
    let stop = CancellationToken::new();
    let settings = Settings::within(configuration(POLICIES[1], &flags)).unwrap();
    let run = tokio::spawn(run_with(settings, dependencies(&client, &clock), Some(Arc::clone(&clock)), stop.clone()));
    clock.sleep(Duration::from_mins(1)).await;
    assert!(!run.is_finished());
    assert_eq!(pods_and_events(&client).await, (vec!["web-1".to_owned()], Vec::new()));
    stop.cancel();
    run.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn evictions_and_passes_are_counted_under_the_names_of_the_community_where_that_is_wanted() {
    for is_wanted in [false, true] {
        let (client, clock) = cluster().await;
        let address = ListenAddress { address: free(), set_by: "metricsBindAddress" };
        let flags = json!({"leaderElection": {"leaderElect": false}, "deschedulingInterval": "1h"});
        let mut settings = Settings::within(configuration(POLICIES[1], &flags)).unwrap();
        settings.metrics = Some(address);
        settings.community_metrics = is_wanted;
        let stop = CancellationToken::new();
        let run =
            tokio::spawn(run_with(settings, dependencies(&client, &clock), Some(Arc::clone(&clock)), stop.clone()));
        clock.sleep(Duration::from_mins(1)).await;
        let page = metrics_page(address.address).await;
        stop.cancel();
        run.await.unwrap().unwrap();
        let original = "descheduler_pods_evicted{namespace=\"default\",node=\"a\",result=\"success\",strategy=\"RemovePodsViolatingNodeTaints\"} 1";
        let labels = "namespace=\"default\",node=\"a\",profile=\"default\",result=\"success\",strategy=\"RemovePodsViolatingNodeTaints\"";
        let strategy = "profile=\"default\",strategy=\"RemovePodsViolatingNodeTaints\"";
        let community = [
            format!("descheduler_pods_evicted{{{labels}}} 1"),
            format!("descheduler_pods_evicted_total{{{labels}}} 1"),
            "descheduler_loop_duration_seconds_count 1".to_owned(),
            "descheduler_descheduler_loop_duration_seconds_count 1".to_owned(),
            format!("descheduler_strategy_duration_seconds_count{{{strategy}}} 1"),
            format!("descheduler_descheduler_strategy_duration_seconds_count{{{strategy}}} 1"),
            format!("DeschedulerVersion=\"v{}\"", env!("CARGO_PKG_VERSION")),
        ];
        assert_eq!(page.contains(original), !is_wanted, "{page}");
        for line in community {
            assert_eq!(page.contains(&line), is_wanted, "{line}\n{page}");
        }
    }
}

/// What `/metrics` serves at an address.
async fn metrics_page(address: SocketAddr) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
