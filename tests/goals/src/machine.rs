//! How fast this machine is, beside the one that the goals were set on.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How long the machine that the goals were set on takes to read and write the JSON of a ConfigMap of 1 KB: the floor of creates in docs/performance.md.
const REFERENCE: Duration = Duration::from_micros(2);

/// A machine that takes longer than so many times as long measures nothing.
const SLOWNESS_MAX: f64 = 4.0;

/// How many times as long as on the machine that the goals were set on this one takes now, for the same work: 1 at least. Machines are shared, so it is
/// taken beside each measurement, and the best of several runs counts.
pub(crate) fn slowness() -> f64 {
    const RUNS: u32 = 8;
    const TIMES: u32 = 1_000;
    let text =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map-000000"}, "data": {"text": "x".repeat(900)}})
            .to_string();
    let run = || {
        let start = Instant::now();
        for _ in 0..TIMES {
            let value: Value = serde_json::from_str(black_box(&text)).unwrap();
            black_box(value.to_string());
        }
        start.elapsed() / TIMES
    };
    let best = (0..RUNS).map(|_| run()).min().unwrap_or_default();
    (best.as_secs_f64() / REFERENCE.as_secs_f64()).clamp(1.0, SLOWNESS_MAX)
}
