//! Load on an API server: one-kilobyte ConfigMaps, created over TLS by many connections at once.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, stream};
use http::{Request, header};
use serde_json::json;

use crate::objects::client;

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub struct Creates {
    /// Objects created per second.
    pub per_second: f64,
    /// CPU time of the server's processes, per object.
    pub server_cpu_each: Duration,
}

/// Creates `count` ConfigMaps of about 1 KB over `connections` connections of their own and measures. `pids` are the server's processes; without
/// any, no CPU time is measured.
pub async fn creates(kubeconfig: &Path, connections: usize, count: usize, pids: &[u32]) -> Result<Creates> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(client(kubeconfig).await?);
    }
    let value = "x".repeat(900);
    let run = format!("{:x}", std::process::id());
    let cpu_before = cpu_time(pids)?;
    let begin = Instant::now();
    let results: Vec<Result<()>> = stream::iter(clients.into_iter().enumerate())
        .map(|(connection, client)| {
            let (value, run) = (value.clone(), run.clone());
            async move {
                for index in (connection..count).step_by(connections) {
                    let body = json!({
                        "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": format!("load-{run}-{index}")}, "data": {"value": value},
                    });
                    let request = Request::post("/api/v1/namespaces/default/configmaps")
                        .header(header::CONTENT_TYPE, "application/json")
                        .body(body.to_string().into_bytes())?;
                    client.request_text(request).await?;
                }
                Ok(())
            }
        })
        .buffer_unordered(connections)
        .collect()
        .await;
    let took = begin.elapsed();
    let cpu = cpu_time(pids)?.saturating_sub(cpu_before);
    results.into_iter().collect::<Result<()>>()?;
    let each = u32::try_from(count).context("too many objects")?.max(1);
    Ok(Creates { per_second: count as f64 / took.as_secs_f64(), server_cpu_each: cpu / each })
}

/// CPU time that processes have used since they began.
pub fn cpu_time(pids: &[u32]) -> Result<Duration> {
    // Linux counts in hundredths of a second on every architecture that we run on.
    const TICKS_PER_SECOND: u64 = 100;
    let mut ticks = 0;
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
        // The name of the program, in parentheses, may hold spaces.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let field = |index: usize| after_name.split_whitespace().nth(index).and_then(|text| text.parse::<u64>().ok());
        ticks += field(11).unwrap_or(0) + field(12).unwrap_or(0);
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Waits until processes have had nothing to do for a second.
pub async fn settled(pids: &[u32]) -> Result<()> {
    loop {
        let before = cpu_time(pids)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if cpu_time(pids)?.saturating_sub(before) <= Duration::from_millis(10) {
            return Ok(());
        }
    }
}

/// Memory that processes hold, in bytes (RSS).
pub fn resident_bytes(pids: &[u32]) -> Result<u64> {
    kilobytes(pids, "VmRSS:")
}

/// The most memory that processes have held, in bytes.
pub fn peak_bytes(pids: &[u32]) -> Result<u64> {
    kilobytes(pids, "VmHWM:")
}

/// Of the memory that processes hold, what is backed by no file, in bytes: the kernel cannot drop it and read it again.
pub fn anonymous_bytes(pids: &[u32]) -> Result<u64> {
    kilobytes(pids, "RssAnon:")
}

fn kilobytes(pids: &[u32], line: &str) -> Result<u64> {
    let mut kilobytes = 0;
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("process {pid} cannot be looked into"))?;
        let value = status.lines().find_map(|known| known.strip_prefix(line)).context("a line of status is missing")?;
        kilobytes += value.split_whitespace().next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(kilobytes * 1024)
}
