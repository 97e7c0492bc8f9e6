//! Seeds that must go well. A plain `cargo test` runs a few; `SEEDS=1000 cargo test --profile sim -p simulation` is what
//! CI runs, `SEEDS=100000` is for a night, and `SEED=4711` runs one of them and tells its story.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{self, Write as _},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Instant,
};

use simulation::{Fault, Options, Report, Scenario, Simulation, manager::Manager, name_cards::NameCards};

/// So many seeds are reported at once when there are many.
const PROGRESS: u64 = 1000;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// One seed, twice; the report, or what is wrong with it.
fn run_twice(simulation: &Simulation<'_>, seed: u64) -> Result<Report, String> {
    let run = || simulation.run(seed, Options::default()).map_err(|failure| failure.to_string());
    let (first, second) = (run()?, run()?);
    let faults: u64 = first.faults.values().sum();
    if first != second {
        Err(format!("seed {seed} does not give the same run twice: {first:?}, {second:?}"))
    } else if first.writes < 200 || faults < 5 {
        Err(format!("seed {seed}: only {} writes and {faults} faults", first.writes))
    } else {
        Ok(first)
    }
}

/// Runs many seeds. Every fault that the scenario can have must have struck at least once in twenty of them.
fn seeds(scenario: &dyn Scenario, name: &str, count: u64, without: &[Fault]) {
    let seeds: Vec<u64> =
        number("SEED").map_or_else(|| (0..number("SEEDS").unwrap_or(count)).collect(), |seed| vec![seed]);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (begun, done, failed) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
    let part = |part: usize| {
        let simulation = Simulation::of(scenario);
        let mut struck: BTreeMap<Fault, u64> = BTreeMap::new();
        for seed in seeds.iter().skip(part).step_by(threads) {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            let report = run_twice(&simulation, *seed).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            for (fault, times) in report.faults {
                *struck.entry(fault).or_default() += times;
            }
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            if done.is_multiple_of(PROGRESS) {
                let rate = done as f64 / begun.elapsed().as_secs_f64();
                // Not captured, unlike what is printed: a night is long.
                let _ = writeln!(io::stderr(), "{name}: {done} of {} seeds, {rate:.0} per second", seeds.len());
            }
        }
        Ok::<_, String>(struck)
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let part = &part;
        let threads: Vec<_> = (0..threads).map(|index| scope.spawn(move || part(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut struck: BTreeMap<Fault, u64> = BTreeMap::new();
    for part in parts {
        let part = part.unwrap_or_else(|failure| {
            panic!("{failure}\nagain: SEED=<the seed> cargo test --profile sim -p simulation {name}");
        });
        for (fault, times) in part {
            *struck.entry(fault).or_default() += times;
        }
    }
    println!("{name}: {} seeds in {:.1} s", seeds.len(), begun.elapsed().as_secs_f64());
    for fault in Fault::ALL.iter().filter(|fault| !without.contains(fault)) {
        let times = struck.get(fault).copied().unwrap_or_default();
        println!("  injector {:>2}, {fault:?}: {times}", fault.injector());
        let enough = times * 20 >= seeds.len() as u64 || seeds.len() < 20;
        assert!(enough, "{fault:?} struck only {times} times in {} seeds", seeds.len());
    }
}

#[test]
fn name_cards_survive_everything() {
    seeds(&NameCards, "name_cards_survive", 60, &[Fault::Malformed]);
}

#[test]
fn the_manager_survives_everything() {
    seeds(&Manager, "the_manager_survives", 40, &[Fault::Terminating]);
}

#[test]
fn different_seeds_give_different_runs() {
    let simulation = Simulation::of(&NameCards);
    let hashes: BTreeSet<u64> =
        (0..10).map(|seed| simulation.run(seed, Options::default()).unwrap().trace_hash).collect();
    assert_eq!(hashes.len(), 10);
}

/// For every write of a recorded run: the same run again, up to the death of the program right after that write.
#[test]
fn a_crash_after_any_write_does_no_harm() {
    let recorded = Options { faults: false, writes: 60, ..Options::default() };
    let scenarios: [&dyn Scenario; 2] = [&NameCards, &Manager];
    for (scenario, seed) in scenarios.into_iter().zip([1, 2]) {
        let simulation = Simulation::of(scenario);
        let writes = simulation.run(seed, recorded).unwrap().program_writes;
        assert!(writes > 10, "only {writes} writes");
        let mut crashed = 0;
        for after in 1..=writes {
            let options = Options { crash_after_write: Some(after), ..recorded };
            let report =
                simulation.run(seed, options).unwrap_or_else(|failure| panic!("crash after write {after}: {failure}"));
            crashed += report.faults.get(&Fault::Crash).copied().unwrap_or_default();
        }
        assert_eq!(crashed, writes, "one death for each write");
    }
}
