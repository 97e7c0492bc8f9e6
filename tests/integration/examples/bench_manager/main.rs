//! Measures koord-manager as its own process at 5 000 nodes and 50 000 pods, against koord-envtest: time, CPU and memory of bringing up a
//! NodeSLO and a NodeMetric per node, the CPU that reports of koordlets cost it, and what it writes when nothing happens.
//!
//! ```sh
//! cargo build --release --bin koord-envtest --bin koord-manager
//! cargo run --release -p integration --example bench_manager -- target/release/koord-envtest target/release/koord-manager CRD-FOLDER [QUIET-SECONDS]
//! ```

mod cluster;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use cluster::{NODES, PODS};
use integration::{
    load::{cpu_time, peak_bytes, resident_bytes, settled},
    objects::{self, create, each, get, send},
    process::{Embedded, Running},
};
use kube::Client;
use tempfile::TempDir;

const SLO: &str = "/apis/slo.koordinator.sh/v1alpha1";

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: bench_manager KOORD-ENVTEST KOORD-MANAGER CRD-FOLDER [QUIET-SECONDS]";
    let (server, manager) = (arguments.next().context(usage)?, arguments.next().context(usage)?);
    let definitions = arguments.next().context(usage)?;
    let quiet = arguments.next().map_or(Ok(10), |text| text.to_string_lossy().parse::<u64>()).context(usage)?;
    let folder = TempDir::new()?;
    let server = Embedded::start(&server, Some(&definitions))?;
    let client = objects::client(&server.kubeconfig).await?;

    for object in cluster::configuration() {
        create(&client, object).await?;
    }
    each(cluster::namespaces(), |object| create(&client, object)).await?;
    each(0..NODES, |number| create(&client, cluster::node(number))).await?;
    each(0..PODS, |number| create(&client, cluster::pod(number))).await?;
    println!("bytes of a pod: {}", get(&client, "/api/v1/pods?limit=1").await?["items"][0].to_string().len());

    let begin = Instant::now();
    let process = start_manager(&manager, &server.kubeconfig, folder.path())?;
    let pids = [process.id()];
    while count(&client, "nodeslos").await?.min(count(&client, "nodemetrics").await?) < NODES {
        ensure!(begin.elapsed() < Duration::from_mins(5), "the manager does not bring up {NODES} nodes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("{NODES} NodeSLO + NodeMetric, wall time, s: {:.1}", begin.elapsed().as_secs_f64());
    settled(&pids).await?;
    println!("the same, CPU of the manager, s: {:.2}", cpu_time(&pids)?.as_secs_f64());
    println!("RSS of the manager, MB: {:.1}", resident_bytes(&pids)? as f64 / 1e6);

    reports(&client, &pids, "first reports, and the nodes' batch resources written", 0..NODES, 0).await?;
    reports(&client, &pids, "reports", 0..2 * NODES, 0).await?;
    println!("RSS of the manager, MB: {:.1}", resident_bytes(&pids)? as f64 / 1e6);

    let (before, spent) = (revision(&client).await?, cpu_time(&pids)?);
    tokio::time::sleep(Duration::from_secs(quiet)).await;
    println!("writes in {quiet} s of silence: {}", revision(&client).await? - before);
    println!("CPU of the manager meanwhile, s: {:.2}", cpu_time(&pids)?.saturating_sub(spent).as_secs_f64());
    println!("RSS of the manager, MB: {:.1}", resident_bytes(&pids)? as f64 / 1e6);

    reports(&client, &pids, "large reports", 0..2_000, 150).await?;
    reports(&client, &pids, "large reports again", 0..2_000, 150).await?;
    println!(
        "RSS of the manager, MB: {:.1}, at its peak {:.1}",
        resident_bytes(&pids)? as f64 / 1e6,
        peak_bytes(&pids)? as f64 / 1e6
    );
    Ok(())
}

/// Reports of koordlets, and what they cost the manager.
async fn reports(
    client: &Client,
    pids: &[u32],
    what: &str,
    numbers: std::ops::Range<usize>,
    others: usize,
) -> Result<()> {
    let time = jiff::Timestamp::now().to_string();
    let (count, size) = (numbers.len(), cluster::report(0, others, &time).to_string().len());
    let before = cpu_time(pids)?;
    each(numbers, |number| {
        let node = number % NODES;
        let path = format!("{SLO}/nodemetrics/{}/status", cluster::node_name(node));
        let body = cluster::report(node, others, &format!("{}.{:03}Z", &time[..19], number / NODES));
        async move { send(client, http::Method::PATCH, &path, "application/merge-patch+json", &body).await }
    })
    .await?;
    settled(pids).await?;
    let spent = cpu_time(pids)?.saturating_sub(before).as_secs_f64();
    println!(
        "{what}, {size} bytes each, per second and core: {:.0} ({count} took {spent:.2} s)",
        count as f64 / spent.max(1e-9)
    );
    Ok(())
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
    Running::start(command.stderr(Stdio::null()))
}

async fn count(client: &Client, plural: &str) -> Result<usize> {
    let list = get(client, &format!("{SLO}/{plural}?limit=1")).await?;
    let rest = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    Ok(list["items"].as_array().map_or(0, Vec::len) + usize::try_from(rest)?)
}

/// The revision of the whole store: every write of anybody raises it.
async fn revision(client: &Client) -> Result<u64> {
    let list = get(client, "/api/v1/namespaces?limit=1").await?;
    let text = list["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
    text.parse().context("a revision that is no number")
}
