//! What it costs to wait for the rate limit: CPU time and timers of the same creations with and without a limit, in one
//! run. Server and program share one thread on paused time, so that minutes of waiting pass at once and only work counts.
//!
//! `cargo run -p koord-runtime --example limited_writes [NODES]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "name_cards/controller.rs"]
mod name_cards;

use std::{sync::Arc, time::Duration};

use envtest::{
    environment::SeededEnvironment,
    kinds,
    request::ApiRequest,
    server::{ApiServer, Outcome},
    shell::{Parts, Server},
    store::HistoryLimits,
};
use http::Method;
use jiff::Timestamp;
use koord_runtime::{
    Core,
    clock::{Clock, CountingClock, ScaledClock, SharedClock},
    manager::{Manager, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
};
use kube::Client;
use name_cards::{COMPONENT, NameCards};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    match server.with_core(|core| core.handle(&ApiRequest::json(method, path, body))) {
        Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// CPU time of this thread.
fn cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

async fn create(nodes: u32, per_second: f32) {
    let environment = SeededEnvironment::new(1, Timestamp::UNIX_EPOCH);
    let mut core = ApiServer::empty(Box::new(environment), HistoryLimits::default());
    kinds::install(&mut core);
    let server = Server::new(core, Parts::default());
    for name in ["default", "cards"] {
        send(&server, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
    }
    for number in 0..nodes {
        send(&server, Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": format!("n{number}")}}));
    }
    let clock = CountingClock::new(ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0));
    let (recorder, events) = Recorder::new(Arc::clone(&clock) as SharedClock);
    let metrics = Metrics::new().unwrap();
    let mut core = Core::new("cards", Arc::clone(&clock) as _, Random::seeded(7), metrics, Arc::new(recorder));
    core.add(NameCards::SPEC, COMPONENT, NameCards::wire).unwrap();
    let settings = Settings {
        requests_per_second: per_second,
        requests_burst: 60,
        leader_election: None,
        metrics: None,
        health: None,
        host: "here".to_owned(),
    };
    let client = Client::new(server.router(), "default");
    let (before, begun) = (cpu(), clock.moment());
    let stop = CancellationToken::new();
    let shared = Arc::clone(&clock) as SharedClock;
    let running = tokio::spawn(Manager::timed_by(shared, core, client, events, settings).run(stop.clone()));
    let path = "/api/v1/namespaces/cards/configmaps";
    let last = format!("{path}/n{}", nodes - 1);
    let all = || {
        let listed = send(&server, Method::GET, &format!("{path}?limit=1"), &Value::Null);
        listed["metadata"]["remainingItemCount"].as_u64().unwrap_or_default() + 1 == u64::from(nodes)
            && send(&server, Method::GET, &last, &Value::Null)["code"].is_null()
    };
    while !all() {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let (spent, took) = (cpu().saturating_sub(before), clock.moment().since(begun));
    stop.cancel();
    running.await.unwrap().unwrap();
    let each = spent.as_secs_f64() * 1e6 / f64::from(nodes);
    let timers = clock.timers() as f64 / f64::from(nodes);
    println!(
        "{nodes} creations at {per_second} per second: {:.0} s, {:.2} s of CPU, {each:.0} µs and {timers:.1} timers each",
        took.as_secs_f64(),
        spent.as_secs_f64()
    );
}

fn main() {
    let nodes = std::env::args().nth(1).map_or(2_000, |count| count.parse().expect("a number of nodes"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    for per_second in [0.0, 30.0, 0.0, 30.0] {
        runtime.block_on(create(nodes, per_second));
    }
}
