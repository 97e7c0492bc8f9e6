//! What a decision costs the heap, from the queue to the assumed node. Time depends on the machine, the number of allocations does not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod scenarios;

use std::sync::Arc;

use allocations::allocations;
use koord_scheduler_framework::pod::Template;
use scenarios::{Scenario, among_others, batch, cpu_bound, gangs, on_gpus, owners, plain, sizes};

const NODES: usize = 200;

/// Allocations of a decision, once each workload was seen.
fn of_a_decision(mut scenario: Scenario) -> usize {
    let decided = scenario.waiting() / 2;
    scenario.decide(decided);
    allocations(|| scenario.decide(decided)).0 / decided
}

/// Checks what decisions cost: at most so many allocations, and not so few that the bound says nothing.
fn check(rows: Vec<(&str, usize, Scenario)>) {
    let wrong = rows.into_iter().filter_map(|(what, most, scenario)| {
        let found = of_a_decision(scenario);
        println!("{what}: {found} allocations");
        (found > most || found * 2 < most)
            .then(|| format!("{what}: {found} allocations of a decision where {most} are allowed"))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

fn turns(templates: Vec<Arc<Template>>) -> impl Fn(usize) -> Arc<Template> {
    move |number| Arc::clone(&templates[number % templates.len()])
}

#[test]
fn decisions_about_pods_of_kubernetes() {
    let of = |templates| Scenario::of_kubernetes(NODES).with_pods(800, turns(templates));
    check(vec![
        ("plain pods", 5, of(vec![plain()])),
        ("pods of twenty workloads", 7, of(sizes(20))),
        ("spread, apart, near and plain pods", 42, of(among_others())),
    ]);
}

#[test]
fn decisions_with_all_plugins() {
    let of = || Scenario::of_koordinator(NODES);
    let bound = |policy| of().with_numa_nodes(NODES, policy).with_pods(400, turns(vec![cpu_bound()]));
    let gangs = gangs(20, 20);
    check(vec![
        ("plain pods", 18, of().with_pods(800, turns(vec![plain()]))),
        ("batch pods", 10, of().with_pods(800, turns(vec![batch()]))),
        ("GPU pods", 53, of().with_gpus(NODES).with_pods(400, turns(on_gpus().into()))),
        ("pods with CPUs of their own", 33, bound("None")),
        ("pods with CPUs of their own of one NUMA node", 45, bound("SingleNUMANodePodLevel")),
        ("owners of reservations", 195, of().with_reservations(200, 20, NODES).with_pods(200, turns(owners(20)))),
        ("gangs of twenty", 50, of().with_pods(400, move |number| Arc::clone(&gangs[number / 20]))),
    ]);
}

/// How many decisions `tests/scheduler-instructions` wants to be made; few otherwise.
fn wanted() -> usize {
    std::env::var("TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn as_many_plain_pods_are_placed_as_wait() {
    let mut scenario = Scenario::of_koordinator(NODES).with_pods(wanted(), turns(vec![plain()]));
    scenario.decide(wanted());
    assert_eq!(scenario.waiting(), 0);
}

#[test]
fn as_many_gpu_pods_are_placed_as_wait() {
    let scenario = Scenario::of_koordinator(NODES).with_gpus(NODES);
    let mut scenario = scenario.with_pods(wanted(), turns(on_gpus().into()));
    scenario.decide(wanted());
    assert_eq!(scenario.waiting(), 0);
}

#[test]
fn as_many_owners_are_placed_as_wait() {
    let scenario = Scenario::of_koordinator(NODES).with_reservations(400, 20, NODES);
    let mut scenario = scenario.with_pods(wanted(), turns(owners(20)));
    scenario.decide(wanted());
    assert_eq!(scenario.waiting(), 0);
}
