//! Measures koord-manager as its own process at 5 000 nodes, against koord-envtest: time, CPU and memory of bringing up a NodeSLO and a
//! NodeMetric per node, and the CPU that reports of koordlets cost it.
//!
//! ```sh
//! cargo build --release --bin koord-envtest --bin koord-manager
//! cargo run --release -p integration --example bench_manager -- target/release/koord-envtest target/release/koord-manager CRD-FOLDER
//! ```

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use integration::load::{cpu_time, resident_bytes};
use koordctl::connect;
use kube::{Client, config::KubeConfigOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

const NODES: usize = 5_000;
const CONNECTIONS: usize = 32;
const SLO: &str = "/apis/slo.koordinator.sh/v1alpha1";

/// A process that ends when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: bench_manager KOORD-ENVTEST KOORD-MANAGER CRD-FOLDER";
    let (server, manager) = (arguments.next().context(usage)?, arguments.next().context(usage)?);
    let definitions = arguments.next().context(usage)?;
    let folder = TempDir::new()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let _server = start_server(&server, &definitions, &kubeconfig)?;
    let client = Client::try_from(connect::from_file(&kubeconfig, &KubeConfigOptions::default()).await?)?;

    let namespace = json!({"metadata": {"name": "koordinator-system"}});
    send(&client, http::Method::POST, "/api/v1/namespaces", "application/json", &namespace).await?;
    each(NODES, |number| {
        let node = json!({"metadata": {"name": format!("node-{number}"), "labels": {"pool": format!("p{}", number % 10)}},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi"}, "capacity": {"cpu": "64", "memory": "256Gi"}}});
        let client = client.clone();
        async move { send(&client, http::Method::POST, "/api/v1/nodes", "application/json", &node).await }
    })
    .await?;

    let begin = Instant::now();
    let process = start_manager(&manager, &kubeconfig, folder.path())?;
    let pids = [process.0.id()];
    while count(&client, "nodeslos").await?.min(count(&client, "nodemetrics").await?) < NODES {
        ensure!(begin.elapsed() < Duration::from_mins(5), "the manager does not bring up {NODES} nodes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{NODES} NodeSLO + NodeMetric, wall time, s: {:.1}", begin.elapsed().as_secs_f64());
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("{NODES} NodeSLO + NodeMetric, CPU of the manager, s: {:.2}", cpu_time(&pids)?.as_secs_f64());
    println!("RSS of the manager, MB: {:.1}", resident_bytes(&pids)? as f64 / 1e6);

    for (size, updates) in [(4_000, 10_000), (30_000, 2_000)] {
        let pods: Vec<Value> = (0..size / 200)
            .map(|pod| json!({"namespace": "default", "name": format!("pod-{pod:06}"), "podUsage": {"resources": {"cpu": "1500m", "memory": "3221225472"}}, "priority": "koord-prod", "qos": "LS"}))
            .collect();
        let status = json!({"status": {"podsMetric": pods}}).to_string().len();
        let before = cpu_time(&pids)?;
        each(updates, |number| {
            let (client, pods) = (client.clone(), pods.clone());
            async move {
                let path = format!("{SLO}/nodemetrics/node-{}/status", number % NODES);
                let usage = json!({"resources": {"cpu": format!("{number}m")}});
                let body = json!({"status": {"nodeMetric": {"nodeUsage": usage}, "podsMetric": pods}});
                send(&client, http::Method::PATCH, &path, "application/merge-patch+json", &body).await
            }
        })
        .await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let spent = cpu_time(&pids)?.checked_sub(before).unwrap_or_default().as_secs_f64();
        println!("NodeMetric reports of {status} bytes per second and core: {:.0}", updates as f64 / spent.max(1e-9));
    }
    println!("RSS of the manager afterwards, MB: {:.1}", resident_bytes(&pids)? as f64 / 1e6);
    Ok(())
}

fn start_server(program: &Path, definitions: &Path, kubeconfig: &Path) -> Result<Running> {
    let mut command = Command::new(program);
    command.args(["--port=0", "--quiet", "--kubeconfig"]).arg(kubeconfig).arg("--crds").arg(definitions);
    let mut server = Running(command.stdout(Stdio::null()).spawn().with_context(|| program.display().to_string())?);
    while !kubeconfig.exists() {
        ensure!(server.0.try_wait()?.is_none(), "{} has ended", program.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(server)
}

fn start_manager(program: &Path, kubeconfig: &Path, folder: &Path) -> Result<Running> {
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(kubeconfig).args([
        "--enable-leader-election=false",
        "--metrics-addr=0",
        "--health-probe-addr=0",
        "--rest-config-qps=0",
    ]);
    command
        .env("WEBHOOK_HOST", "127.0.0.1")
        .env("WEBHOOK_PORT", "0")
        .env("WEBHOOK_CERT_DIR", folder.join("certificates"));
    command.stderr(Stdio::null());
    Ok(Running(command.spawn().with_context(|| program.display().to_string())?))
}

async fn each<F: Future<Output = Result<Value>>>(count: usize, act: impl Fn(usize) -> F) -> Result<()> {
    stream::iter((0..count).map(act)).buffer_unordered(CONNECTIONS).try_for_each(|_| async { Ok(()) }).await
}

async fn send(client: &Client, method: http::Method, path: &str, content_type: &str, body: &Value) -> Result<Value> {
    let request = http::Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, content_type);
    Ok(client.request(request.body(serde_json::to_vec(body)?)?).await?)
}

async fn count(client: &Client, plural: &str) -> Result<usize> {
    let list: Value = client.request(http::Request::get(format!("{SLO}/{plural}?limit=1")).body(Vec::new())?).await?;
    let rest = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    Ok(list["items"].as_array().map_or(0, Vec::len) + usize::try_from(rest)?)
}
