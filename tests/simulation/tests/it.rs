//! Seeds that must go well. A plain `cargo test` runs a few; `SEEDS=1000 cargo test --profile sim -p simulation` is what
//! CI runs, `SEEDS=100000` is for a night, and `SEED=4711 cargo test -p simulation` runs one of them and tells its story.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{collections::BTreeSet, env, thread};

use simulation::{Options, Report, Scenario, manager::Manager, name_cards::NameCards, simulate};

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn run_twice(scenario: &dyn Scenario, seed: u64, options: Options) -> Report {
    let run = || simulate(scenario, seed, options).unwrap_or_else(|failure| panic!("{failure}"));
    let (first, second) = (run(), run());
    assert_eq!(first, second, "seed {seed} does not give the same run twice");
    first
}

/// Runs many seeds; gives the kinds of faults that struck.
fn seeds(scenario: &(dyn Scenario + Sync), count: u64) {
    let seeds: Vec<u64> =
        number("SEED").map_or_else(|| (0..number("SEEDS").unwrap_or(count)).collect(), |seed| vec![seed]);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut kinds = BTreeSet::new();
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let seeds = &seeds;
                scope.spawn(move || {
                    let mut kinds = BTreeSet::new();
                    for seed in seeds.iter().skip(part).step_by(threads) {
                        let report = run_twice(scenario, *seed, Options::default());
                        assert!(report.writes >= 200, "seed {seed}: only {} writes", report.writes);
                        assert!(report.faults >= 5, "seed {seed}: only {} faults", report.faults);
                        kinds.extend(report.fault_kinds);
                    }
                    kinds
                })
            })
            .collect();
        for part in parts {
            kinds.extend(part.join().unwrap());
        }
    });
    println!("{} seeds, faults of these kinds: {kinds:?}", seeds.len());
    if seeds.len() > 50 {
        assert_eq!(kinds.len(), 14, "some kind of fault never struck: {kinds:?}");
    }
}

#[test]
fn name_cards_survive_everything() {
    seeds(&NameCards, 60);
}

#[test]
fn the_manager_survives_everything() {
    seeds(&Manager, 20);
}

#[test]
fn different_seeds_give_different_runs() {
    let hashes: BTreeSet<u64> =
        (0..10).map(|seed| simulate(&NameCards, seed, Options::default()).unwrap().trace_hash).collect();
    assert_eq!(hashes.len(), 10);
}

#[test]
fn a_crash_after_any_write_does_no_harm() {
    let quiet = Options { faults: false, disturbances: 40, ..Options::default() };
    let scenarios: [&dyn Scenario; 2] = [&NameCards, &Manager];
    for scenario in scenarios {
        let writes = simulate(scenario, 1, quiet).unwrap().program_writes;
        assert!(writes > 10, "only {writes} writes");
        for after in 0..writes {
            let options = Options { faults: true, crash_after_write: Some(after), ..quiet };
            simulate(scenario, 1, options).unwrap_or_else(|failure| panic!("crash after write {after}: {failure}"));
        }
    }
}
