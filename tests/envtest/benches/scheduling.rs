//! What scheduling a pod costs the server, and what watches of pods add to that: each pod is created, bound, and its status
//! is written, by 32 writers in process.
//!
//! `cargo bench -p koord-apiserver --bench scheduling` prints one line per setting; `cargo test -p koord-apiserver --bench scheduling` does
//! the same unoptimised and with fewer pods, to compare one change with another.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use envtest::{
    environment::SystemEnvironment,
    kinds,
    request::ApiRequest,
    server::ApiServer,
    shell::{Parts, Server},
    store::HistoryLimits,
};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

const PODS: usize = if cfg!(debug_assertions) { 300 } else { 10_000 };
const WRITERS: usize = 32;
const WATCHERS: usize = 50;
const NODES: usize = 100;
const PATH: &str = "/api/v1/namespaces/default/pods";

fn server() -> Server {
    let mut core = ApiServer::empty(Box::new(SystemEnvironment::default()), HistoryLimits::default());
    kinds::install(&mut core);
    envtest::bootstrap::run(&mut core).unwrap();
    Server::new(core, Parts::default())
}

async fn send(server: &Server, method: Method, path: &str, content_type: &str, body: &Value) {
    let mut request = ApiRequest::new(method, path, body.to_string());
    content_type.clone_into(&mut request.content_type);
    let answer = server.answer(&request).await.unwrap();
    assert!(answer.code < 300, "{}", String::from_utf8_lossy(&answer.body));
}

async fn schedule(server: &Server, index: usize) {
    let name = format!("pod-{index:06}");
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"containers": [{"name": "main", "image": "registry/main:1",
            "resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}}]},
    });
    send(server, Method::POST, PATH, "application/json", &pod).await;
    let node = format!("node-{:03}", index % NODES);
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    send(server, Method::POST, &format!("{PATH}/{name}/binding"), "application/json", &binding).await;
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    let merge = "application/merge-patch+json";
    send(server, Method::PATCH, &format!("{PATH}/{name}/status"), merge, &status).await;
}

/// Reads a watch to its end, and counts its lines.
async fn follow(router: Router, query: String, lines: Arc<AtomicU64>) {
    let uri = format!("/api/v1/pods?watch=1&resourceVersion=1{query}");
    let response = router.oneshot(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let text = frame.unwrap().into_data().unwrap();
        let found = String::from_utf8_lossy(&text).matches('\n').count();
        lines.fetch_add(found as u64, Ordering::Relaxed);
    }
}

/// CPU time of this process, in clock ticks of a hundredth of a second.
fn cpu() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

/// `expected` lines reach the watches in all.
async fn run(name: &str, queries: Vec<String>, expected: u64) {
    let server = server();
    let lines = Arc::new(AtomicU64::new(0));
    let watches: Vec<_> =
        queries.into_iter().map(|query| tokio::spawn(follow(server.router(), query, Arc::clone(&lines)))).collect();
    let (begun, before) = (Instant::now(), cpu());
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let server = server.clone();
            tokio::spawn(async move {
                for index in (writer..PODS).step_by(WRITERS) {
                    schedule(&server, index).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let written = begun.elapsed();
    while lines.load(Ordering::Relaxed) < expected {
        tokio::task::yield_now().await;
    }
    let (seen, after) = (begun.elapsed(), cpu());
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    let cpu_us =
        before.zip(after).map_or(0.0, |(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6 / PODS as f64);
    let rate = PODS as f64 / written.as_secs_f64();
    println!(
        "{name}: {rate:.0} pods/s, {cpu_us:.0} µs CPU per pod, {} lines, all seen after {:.2} s",
        lines.load(Ordering::Relaxed),
        seen.as_secs_f64()
    );
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pods = PODS as u64;
    runtime.block_on(async {
        for _ in 0..2 {
            run("no watch", Vec::new(), 0).await;
            run("50 watches of all pods", vec![String::new(); WATCHERS], WATCHERS as u64 * pods * 3).await;
            // A kubelet's: what is bound to its node, and what changes there.
            let node = |index| format!("&fieldSelector=spec.nodeName%3Dnode-{index:03}");
            let of_nodes = (0..WATCHERS).map(node).collect();
            run("50 watches of one node's pods each", of_nodes, WATCHERS as u64 * pods / NODES as u64 * 2).await;
            let of_nodes = (0..NODES).map(node).collect();
            run("100 watches of one node's pods each", of_nodes, pods * 2).await;
        }
    });
}
