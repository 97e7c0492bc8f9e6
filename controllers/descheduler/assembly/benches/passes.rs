//! What passes cost, and what the cluster costs that they see: `cargo bench -p koord-descheduler-assembly --bench passes [PART OF A NAME]`.
//!
//! As with the decisions of the scheduler, the exit code is 1 where a goal was missed, and times are CPU time of the thread. The clusters are those of
//! `MeasuredCluster`. The floor of a pass reads once what it must look at: of LowNodeLoad what each node is reported to use, of spread constraints the
//! template of each pod, of five strategies both. That of caches reads the JSON of the same objects and keeps nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod filled;

use std::{
    fs,
    hint::black_box,
    process::{Command, ExitCode},
    time::Duration,
};

use filled::{FIVE, Filled, LOW_NODE_LOAD, SPREAD, Strategies};
use goals::{Chosen, Floor, clock, mean};
use koord_descheduler_framework::Stopwatch;
use koord_descheduler_testing::{Load, MeasuredCluster};
use koord_scheduling::ResourceVector;
use serde::de::IgnoredAny;

/// An argument of a process that fills caches and says what it holds then.
const FILL: &str = "fill";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(FILL) {
        fill();
        return ExitCode::SUCCESS;
    }
    Chosen::run(|chosen| {
        small(chosen);
        large(chosen);
        caches(chosen);
    })
}

/// On the cluster on which the original was measured.
fn small(chosen: &Chosen) {
    let names = ["LowNodeLoad with node fit, 1000 nodes", "spread constraints, 1000 nodes"];
    if !names.iter().any(|name| chosen.has(name)) {
        return;
    }
    let (filled, _) = Filled::of(MeasuredCluster::SMALL, &LOW_NODE_LOAD, clock);
    let usages = mean(|| read_usages(&filled));
    timed(chosen.above(Floor::Measured(usages)), names[0], 20, &filled, 200);
    let templates = mean(|| count_templates(&filled));
    let spread = filled.with(&SPREAD);
    timed(chosen.above(Floor::Measured(templates)), names[1], 20, &spread, 20);
}

/// With five times as many nodes and pods.
fn large(chosen: &Chosen) {
    const NAMES: [&str; 5] = [
        "LowNodeLoad where no node is hot, 5000 nodes",
        "LowNodeLoad and four strategies, 5000 nodes",
        "the same, 100 evictions at most",
        "LowNodeLoad without limits, 500 hot nodes of 5000",
        "LowNodeLoad without limits, 2500 hot nodes of 5000",
    ];
    if !NAMES.iter().any(|name| chosen.has(name)) {
        return;
    }
    let (filled, _) = Filled::of(MeasuredCluster::LARGE, &FIVE, clock);
    let usages = mean(|| read_usages(&filled));
    let both = usages + mean(|| count_templates(&filled));
    let calm = filled.with(&Strategies { high_percent: 95, ..LOW_NODE_LOAD });
    timed(chosen.above(Floor::Measured(usages)), NAMES[0], None, &calm, 0);
    let five = calm.with(&FIVE);
    timed(chosen.above(Floor::Measured(both)), NAMES[1], 60, &five, 100);
    let limited = five.with(&Strategies { total: Some(100), ..FIVE });
    timed(chosen.above(Floor::Measured(both)), NAMES[2], 60, &limited, 100);
    let unlimited = Strategies { evictor: "DefaultEvictor", ..LOW_NODE_LOAD };
    let free = limited.with(&unlimited);
    timed(chosen.above(Floor::Measured(usages)), NAMES[3], None, &free, 1000);
    drop(free);
    if chosen.has(NAMES[4]) {
        let halves = MeasuredCluster { load: Load::Halves, ..MeasuredCluster::LARGE };
        let (free, _) = Filled::of(halves, &unlimited, clock);
        let usages = mean(|| read_usages(&free));
        timed(chosen.above(Floor::Measured(usages)), NAMES[4], 60, &free, 5000);
    }
}

/// Times a pass, which evicts so many pods at least.
fn timed(chosen: &Chosen, name: &str, goal_ms: impl Into<Option<u64>>, filled: &Filled, evicted: usize) {
    if chosen.has(name) {
        let plan = filled.timed_pass(Stopwatch(&clock));
        let found = plan.steps.len();
        assert!(found >= evicted, "{name}: {found} evictions");
        let shown: Vec<String> =
            plan.strategy_times.iter().map(|(_, plugin, took)| format!("{plugin} {took:.1?}")).collect();
        println!("{}", shown.join(", "));
        print!("{found} evictions: ");
        chosen.time(goal_ms.into().map(Duration::from_millis), name, 1, || drop(black_box(filled.pass())));
    }
}

/// What all nodes use.
fn read_usages(filled: &Filled) {
    let mut used = ResourceVector::default();
    for (id, _) in filled.cluster.nodes() {
        used.add(filled.cluster.metric(id).unwrap().pods_total());
    }
    black_box(used);
}

/// How many pods each template has.
fn count_templates(filled: &Filled) {
    let mut counts = vec![0_u32; filled.cluster.equivalence_classes_max()];
    for (node, _) in filled.cluster.nodes() {
        for (id, _) in filled.cluster.active_pods_on(node) {
            counts[filled.cluster.equivalence_class(id)] += 1;
        }
    }
    black_box(counts);
}

/// Each in a process of its own: memory that was given back may stay resident.
fn caches(chosen: &Chosen) {
    for (nodes, goal, goal_mb) in [(1000, 500, 40.0), (5000, 2500, 80.0)] {
        let names = [format!("caches filled, {nodes} nodes"), format!("resident, {nodes} nodes")];
        if !names.iter().any(|name| chosen.has(name)) {
            continue;
        }
        let mut program = Command::new(std::env::current_exe().unwrap());
        let output = program.args([FILL, &nodes.to_string()]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let numbers: Vec<f64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [filled, floor, resident] = numbers[..] else { panic!("{printed}") };
        chosen.above(Floor::Measured(Duration::from_secs_f64(floor))).took(
            Duration::from_millis(goal),
            &names[0],
            Duration::from_secs_f64(filled),
        );
        chosen.holds(goal_mb, &names[1], resident / 1e6);
    }
}

/// Fills caches and makes a pass; prints how many seconds that took, how many its floor, and how many bytes are resident then.
fn fill() {
    let nodes = std::env::args().nth(2).and_then(|text| text.parse().ok()).unwrap();
    let of = MeasuredCluster { nodes, ..MeasuredCluster::LARGE };
    let (filled, busy) = Filled::of(of, &FIVE, clock);
    drop(filled.pass());
    let resident = resident_bytes();
    let mut floor = Duration::ZERO;
    for object in of.objects() {
        let line = object.to_string();
        let start = clock();
        black_box(serde_json::from_str::<IgnoredAny>(black_box(&line)).unwrap());
        floor += clock().saturating_sub(start);
    }
    println!("{} {} {resident}", busy.as_secs_f64(), floor.as_secs_f64());
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|known| known.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}
