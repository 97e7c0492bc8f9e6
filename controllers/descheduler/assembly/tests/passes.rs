//! What passes cost, in allocations and, for `tests/descheduler-instructions`, in instructions. Neither depends on the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "../benches/filled/mod.rs"]
mod filled;

use std::time::Duration;

use allocations::allocations;
use filled::{FIVE, Filled, LOW_NODE_LOAD, SPREAD, Strategies};
use koord_descheduler_framework::{ReasonCode, VerdictScope};
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

/// Where nobody asks why pods stay, strategies end their search with the last eviction that the limits allow.
#[test]
fn what_is_evicted_does_not_depend_on_who_asks_for_verdicts() {
    for total in [0, 1, 25, 1000] {
        let filled = filled(&Strategies { total: Some(total), ..FIVE });
        let [plain, asked] = [VerdictScope::Nothing, VerdictScope::All(usize::MAX)].map(|of| filled.pass_for(of));
        assert_eq!(plain.steps.len(), 40.min(total as usize));
        assert_eq!((&plain.steps, plain.verdicts.len()), (&asked.steps, 0));
        let is_limited = asked.verdicts.iter().any(|verdict| verdict.refusal.code == ReasonCode::TotalLimit);
        assert_eq!(is_limited, total < 40, "{total}");
    }
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
