//! What passes cost, in allocations and, for `tests/descheduler-instructions`, in instructions. Neither depends on the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "../benches/filled/mod.rs"]
mod filled;

use std::time::Duration;

use allocations::allocations;
use filled::{FIVE, Filled, LOW_NODE_LOAD, SPREAD, Strategies};
use koord_descheduler_testing::MeasuredCluster;

const CLUSTER: MeasuredCluster = MeasuredCluster { nodes: 100, ..MeasuredCluster::SMALL };
/// No node is so hot.
const CALM: Strategies<'static> = Strategies { high_percent: 95, ..LOW_NODE_LOAD };

fn filled(strategies: &Strategies<'_>) -> Filled {
    Filled::of(CLUSTER, strategies, || Duration::ZERO).0
}

/// How many passes `tests/descheduler-instructions` wants to be made; few otherwise.
fn wanted() -> usize {
    std::env::var("TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Makes as many passes as are wanted, each of which evicts so many pods.
fn passes(strategies: &Strategies<'_>, evicted: usize) {
    let filled = filled(strategies);
    for _ in 0..wanted() {
        assert_eq!(filled.pass().steps.len(), evicted);
    }
}

#[test]
fn passes_of_low_node_load() {
    passes(&LOW_NODE_LOAD, 20);
}

#[test]
fn calm_passes_of_low_node_load() {
    passes(&CALM, 0);
}

#[test]
fn passes_of_spread_constraints() {
    passes(&SPREAD, 20);
}

#[test]
fn passes_of_five_strategies() {
    passes(&FIVE, 40);
}

#[test]
fn caches_are_filled() {
    for _ in 0..wanted() {
        drop(filled(&FIVE));
    }
}

/// Passes allocate at most so often, and not so seldom that the bound says nothing.
#[test]
fn allocations_of_passes() {
    let rows =
        [("LowNodeLoad", 800, LOW_NODE_LOAD), ("calm", 30, CALM), ("spread", 1500, SPREAD), ("five", 3800, FIVE)];
    let wrong = rows.into_iter().filter_map(|(what, most, strategies)| {
        let filled = filled(&strategies);
        let found = allocations(|| filled.pass()).0;
        println!("{what}: {found} allocations of a pass");
        (found > most || found * 2 < most).then(|| format!("{what}: {found} allocations where {most} are allowed"))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}
