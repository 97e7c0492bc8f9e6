//! Measures what a gauge per node costs at 5 000 nodes: `cargo run --release -p koord-runtime --example metric_memory`.
#![allow(clippy::print_stdout)]

use std::{error::Error, fs, time::Duration};

use koord_runtime::{
    clock::SystemClock,
    metrics::{Audience, Description, ExpiringGauge, Metrics, Unit},
};

const NODES: usize = 5000;
const LABELS: &[&str] = &["node", "resource", "unit"];
const EXPIRING: Description =
    Description::gauge("expiring", LABELS, "What batch pods may use.").unit(Unit::Labelled).to(Audience::Internal);
const LASTING: Description = Description::gauge("lasting", LABELS, "The same.").to(Audience::External);

fn main() -> Result<(), Box<dyn Error>> {
    let (metrics, clock) = (Metrics::new()?, SystemClock::shared());
    let expiring = ExpiringGauge::new(EXPIRING, clock.clone(), Duration::from_mins(5))?;
    metrics.adopt(EXPIRING, expiring.clone())?;
    let lasting = metrics.float_gauge(LASTING)?;
    measure("ExpiringGauge", |labels, value| expiring.set(labels, value))?;
    measure("GaugeVec", |labels, value| lasting.with_label_values(labels).set(value))?;
    for (what, audience) in [("ExpiringGauge", Audience::Internal), ("GaugeVec", Audience::External)] {
        let (before, start) = (resident()?, clock.moment());
        let text = metrics.text(&[audience]);
        let spent = clock.moment().since(start);
        let grown = resident()?.saturating_sub(before);
        println!("{what}: a scrape of {} bytes took {spent:?} and {grown} bytes beyond what was held", text.len());
    }
    Ok(())
}

fn measure(what: &str, set: impl Fn(&[&str], f64)) -> Result<(), Box<dyn Error>> {
    let before = resident()?;
    for node in 0..NODES {
        let name = format!("node-{node:06}");
        set(&[&name, "kubernetes.io/batch-cpu", "integer"], 12.5);
        set(&[&name, "kubernetes.io/batch-memory", "byte"], 34_359_738_368.0);
    }
    let grown = resident()?.saturating_sub(before);
    println!("{what}: {} series, {} bytes each, {grown} together", NODES * 2, grown / (NODES * 2));
    Ok(())
}

fn resident() -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<usize>()? * 1024)
}
