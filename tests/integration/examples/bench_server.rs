//! Measures koord-envtest: start, memory, creates over TLS; and a real kube-apiserver with etcd beside it when `KUBEBUILDER_ASSETS` names them.
//!
//! ```sh
//! cargo build --release --bin koord-envtest
//! cargo run --release -p integration --example bench_server -- target/release/koord-envtest CRD-FOLDER
//! ```
//!
//! Starts are from exec to a kubeconfig that leads to a server with the definitions of the folder (the real server: to the first `ok` of /readyz,
//! without definitions).

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use integration::{RealServer, load, process::Embedded};

const STARTS: usize = 7;
const RUNS: usize = 5;
const CONNECTIONS: usize = 32;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let program = arguments.next().context("usage: bench_server KOORD-ENVTEST [CRD-FOLDER]")?;
    let definitions = arguments.next();
    let count: usize = 20_000;

    let starts: Vec<Duration> = (0..STARTS)
        .map(|_| Embedded::start(&program, definitions.as_deref()).map(|server| server.start))
        .collect::<Result<_>>()?;
    println!("koord-envtest start, ms: {}", spread(starts.iter().map(|start| start.as_secs_f64() * 1000.0)));

    let server = Embedded::start(&program, definitions.as_deref())?;
    let pids = [server.process.id()];
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("koord-envtest idle RSS, MB: {:.1}", load::resident_bytes(&pids)? as f64 / 1e6);
    drop(server);
    let mut rates = Vec::new();
    let mut costs = Vec::new();
    for _ in 0..RUNS {
        // A fresh server each time, so that no run finds the objects of the one before.
        let server = Embedded::start(&program, None)?;
        let run = load::creates(&server.kubeconfig, CONNECTIONS, count, &[server.process.id()]).await?;
        rates.push(run.per_second);
        costs.push(run.server_cpu_each.as_secs_f64() * 1e6);
        println!("  after {count} objects: RSS {:.1} MB", load::resident_bytes(&[server.process.id()])? as f64 / 1e6);
    }
    println!("koord-envtest creates at {CONNECTIONS} connections, per second: {}", spread(rates.iter().copied()));
    println!("koord-envtest CPU per create, µs: {}", spread(costs.iter().copied()));

    let Some(assets) = RealServer::assets() else {
        println!("kube-apiserver: not measured; KUBEBUILDER_ASSETS is not set (tests/kube-assets)");
        return Ok(());
    };
    let server = RealServer::start(&assets).await?;
    let pids = [server.apiserver_pid, server.etcd_pid];
    println!("kube-apiserver start, ms: {:.0}", server.start.as_secs_f64() * 1000.0);
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("kube-apiserver + etcd idle RSS, MB: {:.1}", load::resident_bytes(&pids)? as f64 / 1e6);
    let run = load::creates(&server.kubeconfig, CONNECTIONS, count / 4, &pids).await?;
    println!("kube-apiserver creates at {CONNECTIONS} connections, per second: {:.0}", run.per_second);
    println!("kube-apiserver + etcd CPU per create, µs: {:.0}", run.server_cpu_each.as_secs_f64() * 1e6);
    Ok(())
}

/// Median, smallest and largest.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match (values.get(values.len() / 2), values.first(), values.last()) {
        (Some(median), Some(least), Some(most)) => format!("{median:.1} [{least:.1}–{most:.1}]"),
        _ => "nothing".to_owned(),
    }
}
