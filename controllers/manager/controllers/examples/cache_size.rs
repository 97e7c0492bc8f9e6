//! Measures what objects cost in the manager's caches: `cargo run --release -p koord-manager-controllers --example cache_size`.
#![allow(clippy::print_stdout)]

use std::{error::Error, fs};

use koord_manager_controllers::view::{NodeMetricView, NodeSloView, NodeView, PodView};
use koord_runtime::{cache::Cache, projection::Projection};
use serde_json::json;

const OBJECTS: usize = 50_000;

fn main() -> Result<(), Box<dyn Error>> {
    let spec = r#"{"resourceUsedThresholdWithBE":{"enable":false,"cpuSuppressThresholdPercent":65,"cpuSuppressPolicy":"cpuset","memoryEvictThresholdPercent":70,"cpuEvictPolicy":"evictByRealLimit"},"resourceQOSStrategy":{},"cpuBurstStrategy":{"policy":"none","cpuBurstPercent":1000,"cfsQuotaBurstPercent":300,"cfsQuotaBurstPeriodSeconds":-1,"sharePoolThresholdPercent":50},"systemStrategy":{"totalNetworkBandwidth":"0"},"extensions":{"Object":{}}}"#;
    let metadata = |number: usize| {
        format!(
            r#""metadata":{{"name":"node-{number:06}","uid":"6f1d1b7e-0000-4000-8000-{number:012}","resourceVersion":"{number}","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"}}"#
        )
    };
    measure::<NodeSloView>("NodeSLO, all specs equal", |number| format!(r#"{{{},"spec":{spec}}}"#, metadata(number)))?;
    let report = json!({"podsMetric": vec![json!({"name": "pod", "podUsage": {"resources": {"cpu": "1500m"}}}); 50]});
    measure::<NodeMetricView>("NodeMetric with 50 pods, all specs equal", |number| {
        format!(r#"{{{},"spec":{{"metricCollectPolicy":{{}}}},"status":{report}}}"#, metadata(number))
    })?;
    measure::<PodView>("Pod, ten to a node", |number| {
        let container = json!({"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}});
        json!({
            "metadata": {"name": format!("pod-{number:06}"), "namespace": format!("team-{}", number % 100),
                         "uid": format!("6f1d1b7e-0000-4000-8000-{number:012}"), "resourceVersion": number.to_string()},
            "spec": {"nodeName": format!("node-{:06}", number / 10), "priority": 9500, "containers": [container]},
            "status": {"phase": "Running", "qosClass": "Burstable"},
        })
        .to_string()
    })?;
    measure::<NodeView>("Node with 20 labels, one of them its own", |number| {
        let name = format!("node-{number:06}");
        let mut labels: serde_json::Map<String, serde_json::Value> = (0..19)
            .map(|label| (format!("example.com/label-{label}"), format!("value-{}", number % 3).into()))
            .collect();
        labels.insert("kubernetes.io/hostname".to_owned(), name.as_str().into());
        json!({
            "metadata": {"name": name, "uid": format!("6f1d1b7e-0000-4000-8000-{number:012}"), "resourceVersion": number.to_string(), "labels": labels},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi"}},
        })
        .to_string()
    })
}

fn measure<P: Projection>(what: &str, object: impl Fn(usize) -> String) -> Result<(), Box<dyn Error>> {
    let wire = object(1).len();
    let before = resident()?;
    let mut cache = Cache::<P>::default();
    for number in 1..=OBJECTS {
        cache.upsert(&object(number))?;
    }
    let each = resident()?.saturating_sub(before) / cache.len();
    println!("{what}: {each} bytes each ({wire} on the wire), {} shared texts", cache.sizes().strings);
    // Kept until here, so that the next measurement starts above it.
    std::mem::forget(cache);
    Ok(())
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<usize, Box<dyn Error>> {
    const PAGE: usize = 4096;
    let pages = fs::read_to_string("/proc/self/statm")?;
    Ok(pages.split_whitespace().nth(1).ok_or("no second field")?.parse::<usize>()? * PAGE)
}
