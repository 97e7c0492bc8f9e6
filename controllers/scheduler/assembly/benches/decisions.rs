//! What a decision costs, without an API server: `cargo bench -p koord-scheduler-assembly --bench decisions [PART OF A NAME]`.
//!
//! A measurement with a goal says so, and the exit code is 1 where one was missed. Times are CPU time of the thread, so that other work on the
//! machine matters little.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod decided;
#[path = "../tests/scenarios/mod.rs"]
mod scenarios;

use std::{process::ExitCode, sync::Arc, time::Duration};

use decided::Decided as _;
use goals::{Chosen, Floor, clock};
use koord_scheduler_framework::{cluster::Turn, pod::Template};
use scenarios::{
    Scenario, among_others, batch, cpu_bound, gangs, labelled, on_gpus, owners, plain, preferring, sizes, spec,
    workload,
};
use serde_json::json;

const NODES: usize = 5000;

/// By turns.
fn turns(templates: Vec<Arc<Template>>) -> impl Fn(usize) -> Arc<Template> {
    move |number| Arc::clone(&templates[number % templates.len()])
}

/// A workload of its own, which asks for what the others ask for.
fn job(number: usize) -> Arc<Template> {
    labelled(&spec(&scenarios::requests()), &[("job-name", &format!("job-{number}"))])
}

/// A workload that asks for something else than the others.
fn unlike(number: usize) -> Arc<Template> {
    workload(&spec(&json!({"cpu": "1", "memory": format!("{}Ki", 1000 + number)})))
}

fn main() -> ExitCode {
    Chosen::run(|chosen| {
        plain_pods(chosen);
        pods_beside_others(chosen);
        pods_of_koordinator(chosen);
        audits(chosen);
    })
}

/// What an audit costs, of which the program makes one step a second: a share of the rows, or one part of the cluster as a whole.
fn audits(chosen: &Chosen) {
    const ROWS: usize = 64;
    let mixed = || {
        let members = gangs(200, 20);
        let mut pods = [plain(), cpu_bound(), batch()].to_vec();
        pods.extend(on_gpus().into_iter().next());
        let mut scenario = Scenario::of_koordinator(NODES)
            .with_gpus(NODES)
            .with_numa_nodes(NODES, "None")
            .with_metrics(NODES)
            .with_quotas(200)
            .with_pods(4000, move |number| Arc::clone(&members[number / 20]))
            .with_pods(16_000, turns(pods));
        scenario.decide(20_000);
        scenario.with_reservations(1000, 20, NODES)
    };
    let plain_ones = || {
        let mut scenario = Scenario::of_koordinator(10_000).with_pods(300_000, turns(sizes(20)));
        scenario.decide(300_000);
        scenario
    };
    let scenarios: [(&str, &dyn Fn() -> Scenario); 2] =
        [("5000 nodes and 20000 mixed pods", &mixed), ("10000 nodes and 300000 plain pods", &plain_ones)];
    for (name, scenario) in scenarios {
        if !chosen.has(&format!("an audit of {name}")) {
            continue;
        }
        let mut scenario = scenario();
        let rounds: Vec<Vec<(Turn, Duration)>> = (0..5).map(|_| scenario.audit(ROWS, clock)).collect();
        let median = |at: usize| {
            let mut taken: Vec<Duration> = rounds.iter().map(|round| round[at].1).collect();
            taken.sort();
            taken[taken.len() / 2]
        };
        let all: Vec<(Turn, Duration)> =
            rounds[0].iter().enumerate().map(|(at, (turn, _))| (*turn, median(at))).collect();
        let of_rows = |turn: &Turn| matches!(turn, Turn::Rows(_));
        let slowest = |rows: bool| all.iter().filter(|(turn, _)| of_rows(turn) == rows).max_by_key(|(_, taken)| *taken);
        let sum: Duration = all.iter().map(|(_, taken)| *taken).sum();
        println!(
            "an audit of {name}: {sum:?} in {} steps, the slowest {:?} and {:?}",
            all.len(),
            slowest(true),
            slowest(false)
        );
        for (turn, taken) in all.iter().filter(|(turn, _)| !of_rows(turn)) {
            println!("  {turn:?}: {taken:?}");
        }
    }
}

fn plain_pods(chosen: &Chosen) {
    for nodes in [1000, NODES, 20_000] {
        let scenario = || Scenario::of_kubernetes(nodes).with_pods(20_000, turns(vec![plain()]));
        chosen.above(Floor::Largest(nodes)).measure_for(
            50_000.0,
            &format!("plain pods of one workload, {nodes} nodes"),
            scenario,
        );
    }
    chosen.measure("pods of 20 workloads by turns", || {
        Scenario::of_kubernetes(NODES).with_pods(20_000, turns(sizes(20)))
    });
    chosen.measure("each pod of another workload that asks for the same", || {
        Scenario::of_kubernetes(NODES).with_pods(1000, job)
    });
    chosen
        .measure("each pod of a workload unlike all others", || Scenario::of_kubernetes(NODES).with_pods(1000, unlike));
}

fn pods_beside_others(chosen: &Chosen) {
    chosen.measure("pods that prefer a zone", || {
        Scenario::of_kubernetes(NODES).with_pods(2000, turns(vec![preferring()]))
    });
    let whats = [
        "spread over zones and nodes",
        "apart from their own",
        "near another workload",
        "plain, beside workloads with terms",
    ];
    for (index, what) in whats.into_iter().enumerate() {
        // The workloads are there before the one that counts.
        chosen.measure(&format!("pods that are {what}"), || {
            let all = among_others();
            let mut scenario = Scenario::of_kubernetes(NODES).with_pods(1000, turns(all.clone()));
            scenario.decide(1000);
            scenario.with_pods(3000, turns(vec![Arc::clone(&all[index])]))
        });
    }
    chosen.measure("spread, apart, near and plain pods of 20 workloads by turns", || {
        Scenario::of_kubernetes(NODES).with_pods(10_000, turns((0..5).flat_map(|_| among_others()).collect()))
    });
}

fn pods_of_koordinator(chosen: &Chosen) {
    let shipped = || Scenario::of_koordinator(NODES);
    chosen
        .above(Floor::Largest(NODES))
        .measure_for(50_000.0, "plain pods, all plugins", || shipped().with_pods(20_000, turns(vec![plain()])));
    chosen
        .measure("each pod of another workload that asks for the same, all plugins", || shipped().with_pods(1000, job));
    chosen.measure("each pod of a workload unlike all others, all plugins", || shipped().with_pods(1000, unlike));
    chosen.measure("batch pods, all plugins", || shipped().with_pods(10_000, turns(vec![batch()])));
    chosen.above(Floor::Largest(NODES)).measure_for(2000.0, "affinity, spread and batch pods, all plugins", || {
        let mut mixed = among_others();
        mixed.truncate(3);
        mixed.push(batch());
        shipped().with_pods(4000, turns(mixed))
    });
    chosen.above(Floor::Largest(NODES)).measure_for(2000.0, "gangs of 20, all plugins", || {
        let gangs = gangs(200, 20);
        shipped().with_pods(4000, move |number| Arc::clone(&gangs[number / 20]))
    });
    chosen.above(Floor::Largest(NODES)).measure_for(5000.0, "GPU pods, all plugins", || {
        shipped().with_gpus(NODES).with_pods(4000, turns(on_gpus().into()))
    });
    for policy in ["None", "SingleNUMANodePodLevel"] {
        chosen.above(Floor::Largest(NODES)).measure_for(
            5000.0,
            &format!("pods with CPUs of their own, policy {policy}"),
            || shipped().with_numa_nodes(NODES, policy).with_pods(4000, turns(vec![cpu_bound()])),
        );
    }
    for workloads in [1, 20, 50] {
        chosen.above(Floor::Largest(NODES)).measure_for(
            5000.0,
            &format!("owners of 1000 reservations, {workloads} workloads"),
            || shipped().with_reservations(1000, workloads, NODES).with_pods(1000, turns(owners(workloads))),
        );
        chosen.measure(&format!("the same without reservations, {workloads} workloads"), || {
            shipped().with_pods(1000, turns(owners(workloads)))
        });
    }
}
