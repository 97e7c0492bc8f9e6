//! Seeds that must go well. A plain `cargo test` runs a few; CI runs 300 and a night 5000 or more, optimised:
//! `SEEDS=5000 cargo --config tests/optimised.toml test --workspace --test seeds`. `FIRST=42000` continues a
//! night, and `SEED=4711` runs one seed and prints its story. `SCHEDULER_SEEDS` is another number for the scenarios of the scheduler
//! in all, of which CI plays 3000.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{self, Write as _},
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use koord_runtime::panics::Place;
use simulation::{
    Admission, Failure, Fault, Options, Report, Rounds, Scenario, Simulation, descheduling::Descheduling,
    manager::Manager, name_cards::NameCards, parts::Parts, scheduling::Scheduling, whole_manager::WholeManager,
    workloads::Workloads,
};

/// People also write nonsense.
const WHOLE: WholeManager = WholeManager { sensible: false };
/// See [`WHOLE`].
const MANAGER: Manager = Manager { sensible: false };

/// So many seeds are reported at once when there are many.
const PROGRESS: usize = 1000;

/// One way to run a seed.
type Run<'s> = Box<dyn Fn(u64, Options) -> Result<Report, Failure> + 's>;

/// Step by step.
fn steps(scenario: &dyn Scenario) -> Run<'_> {
    let simulation = Simulation::of(scenario);
    Box::new(move |seed, options| simulation.run(seed, options))
}

/// Through the real tasks.
fn tasks(scenario: &dyn Scenario) -> Run<'_> {
    let simulation = Simulation::of(scenario);
    Box::new(move |seed, options| simulation.run_tasks(seed, options))
}

/// With webhooks.
fn admission<'s>() -> Run<'s> {
    let admission = Admission::prepare().unwrap();
    Box::new(move |seed, options| admission.run(seed, options))
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// One seed in so many is run twice, and must give the same run.
const TWICE: u64 = 10;
/// After so many seeds that went wrong, no others are begun.
const FAILURES_MAX: usize = 5;

/// The report of one seed, or what is wrong with it.
fn run_seed(run: &Run<'_>, seed: u64) -> Result<Report, String> {
    let run = || run(seed, Options::default()).map_err(|failure| failure.to_string());
    let first = run()?;
    if seed.is_multiple_of(TWICE) || number("SEED").is_some() {
        let second = run()?;
        if first != second {
            return Err(format!("seed {seed} does not give the same run twice: {first:?}, {second:?}"));
        }
    }
    let faults: u64 = first.faults.values().sum();
    if first.writes < 200 || faults < 5 {
        return Err(format!("seed {seed}: only {} writes and {faults} faults", first.writes));
    }
    Ok(first)
}

/// The seeds to run: one, as many as are asked for, or a few. Of the slow scenarios there are fewer. `FIRST` goes on
/// where a night broke off.
fn chosen(few: u64, one_in: u64) -> Vec<u64> {
    let first = number("FIRST").unwrap_or_default() / one_in;
    match number("SEED") {
        Some(seed) => vec![seed],
        None => (first..number("SEEDS").map_or(few, |seeds| seeds.div_ceil(one_in))).collect(),
    }
}

/// The seeds of one of the scheduler's scenarios, which gets so many of a hundred: all of them together play `SCHEDULER_SEEDS`, or as many
/// as `SEEDS` says.
fn of_the_schedulers(few: u64, percent: u64) -> Vec<u64> {
    let of = |seeds: u64| (seeds * percent).div_ceil(100);
    let first = of(number("FIRST").unwrap_or_default());
    match number("SEED") {
        Some(seed) => vec![seed],
        None => (first..number("SCHEDULER_SEEDS").or(number("SEEDS")).map_or(few, of)).collect(),
    }
}

/// Runs many seeds, in order, on all cores. Every fault that is expected must have struck at least once in twenty of them.
fn seeds<'s>(run: impl Fn() -> Run<'s> + Sync, name: &str, seeds: &[u64], expected: &[Fault]) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (begun, next, failures) = (Instant::now(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let command = "cargo --config tests/optimised.toml test --workspace --test seeds";
    let again = |seed: u64| format!("again: SEED={seed} {command} {name}");
    let part = || {
        let run = run();
        let mut struck: BTreeMap<Fault, u64> = BTreeMap::new();
        while failures.lock().unwrap().len() < FAILURES_MAX {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = seeds.get(index) else { break };
            match run_seed(&run, *seed) {
                Ok(report) => {
                    for (fault, times) in report.faults {
                        *struck.entry(fault).or_default() += times;
                    }
                }
                Err(failure) => {
                    let failure = format!("{failure}\n{}", again(*seed));
                    let _ = writeln!(io::stderr(), "{name}: {failure}");
                    failures.lock().unwrap().push(failure);
                }
            }
            if (index + 1).is_multiple_of(PROGRESS) {
                let rate = index as f64 / begun.elapsed().as_secs_f64();
                // Not captured, unlike what is printed: a night is long.
                let line = format!("{name}: about {index} of {} seeds, {rate:.0} per second", seeds.len());
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
        struck
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(part)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds went wrong:\n{}", failures.len(), failures.join("\n"));
    let mut struck: BTreeMap<Fault, u64> = BTreeMap::new();
    for (fault, times) in parts.into_iter().flatten() {
        *struck.entry(fault).or_default() += times;
    }
    println!("{name}: {} seeds in {:.1} s", seeds.len(), begun.elapsed().as_secs_f64());
    for fault in expected {
        let times = struck.get(fault).copied().unwrap_or_default();
        println!("  injector {:>2}, {fault:?}: {times}", fault.injector());
        let enough = times * 20 >= seeds.len() as u64 || seeds.len() < 20;
        assert!(enough, "{fault:?} struck only {times} times in {} seeds", seeds.len());
    }
}

/// The faults of one program without webhooks.
fn all_but(never: &[Fault]) -> Vec<Fault> {
    let of_others =
        [Fault::Uncertified, Fault::Unconfigured, Fault::Skew, Fault::Deposed, Fault::Panic(Place::Election)];
    Fault::ALL.into_iter().filter(|fault| !never.contains(fault) && !of_others.contains(fault)).collect()
}

#[test]
fn name_cards_survive_everything() {
    // Name cards remember nothing.
    let expected = all_but(&[Fault::Malformed, Fault::Outage, Fault::Panic(Place::Remember)]);
    seeds(|| steps(&NameCards), "name_cards_survive", &chosen(60, 1), &expected);
}

#[test]
fn all_controllers_survive_everything_together() {
    let expected = all_but(&[Fault::Terminating, Fault::Outage]);
    seeds(|| steps(&WHOLE), "all_controllers_survive", &chosen(8, 4), &expected);
}

#[test]
fn the_manager_survives_everything() {
    // What these two controllers remember, they remember once.
    let expected = all_but(&[Fault::Terminating, Fault::Outage, Fault::Panic(Place::Remember)]);
    seeds(|| steps(&MANAGER), "the_manager_survives", &chosen(40, 1), &expected);
}

/// Where only controllers with keys can panic.
const OF_KEYS: [Place; 4] = [Place::Reconcile, Place::Written, Place::Failed, Place::Execution];

/// The faults of a scheduler: it has no keys, and no memory beside its engine.
fn of_the_scheduler() -> Vec<Fault> {
    let mut never = OF_KEYS.map(Fault::Panic).to_vec();
    never.extend([Fault::Panic(Place::Remember), Fault::Terminating, Fault::Outage, Fault::Malformed, Fault::Stuck]);
    all_but(&never)
}

/// Runs seeds of a scheduler; of each, some bindings must be such that they can be judged.
fn scheduler_seeds(scenario: &dyn Scenario, name: &str, chosen: &[u64], expected: &[Fault]) {
    let bindings = AtomicU64::new(0);
    let run = || -> Run<'_> {
        let (run, bindings) = (steps(scenario), &bindings);
        Box::new(move |seed, options| {
            let report = run(seed, options)?;
            bindings.fetch_add(report.bindings, Ordering::Relaxed);
            Ok(report)
        })
    };
    seeds(run, name, chosen, expected);
    let bindings = bindings.into_inner();
    println!("  bindings judged: {bindings}");
    assert!(bindings >= 5 * chosen.len() as u64, "only {bindings} bindings could be judged");
}

#[test]
fn the_scheduler_survives_everything() {
    scheduler_seeds(
        &Scheduling { exact: false },
        "the_scheduler_survives",
        &of_the_schedulers(20, 33),
        &of_the_scheduler(),
    );
}

#[test]
fn quotas_gangs_and_reservations_survive_everything() {
    scheduler_seeds(&Workloads, "quotas_gangs_and_reservations", &of_the_schedulers(20, 28), &of_the_scheduler());
}

#[test]
fn parts_of_nodes_are_given_out_once_whatever_happens() {
    let mut expected = of_the_scheduler();
    expected.extend([Fault::Malformed, Fault::Stuck, Fault::Terminating]);
    scheduler_seeds(&Parts { exact: false }, "parts_of_nodes", &of_the_schedulers(20, 36), &expected);
}

/// What goes wrong on the way between the real tasks and the server, or with programs as a whole.
const OF_TASKS: [Fault; 28] = [
    Fault::StaleList,
    Fault::Crash,
    Fault::Cut,
    Fault::Closed,
    Fault::Expired,
    Fault::Duplicate,
    Fault::Conflict,
    Fault::TooMany,
    Fault::ErrorBefore,
    Fault::ErrorAfter,
    Fault::Lost,
    Fault::Refused,
    Fault::Outage,
    Fault::Slow,
    Fault::Skew,
    Fault::Deposed,
    Fault::Recreated,
    Fault::Stuck,
    Fault::Revoked,
    Fault::Panic(Place::Projection),
    Fault::Panic(Place::Listener),
    Fault::Panic(Place::Reconcile),
    Fault::Panic(Place::Written),
    Fault::Panic(Place::Failed),
    Fault::Panic(Place::Execution),
    Fault::Panic(Place::Watch),
    Fault::Panic(Place::Election),
    Fault::Panic(Place::Events),
];

#[test]
fn tasks_keep_name_cards_right() {
    seeds(|| tasks(&NameCards), "tasks_keep_name_cards", &chosen(2, 40), &OF_TASKS);
}

#[test]
fn tasks_keep_the_manager_right() {
    seeds(|| tasks(&MANAGER), "tasks_keep_the_manager", &chosen(2, 40), &OF_TASKS);
}

/// Two schedulers, of which one leads until its lease is over.
#[test]
fn tasks_keep_the_schedulers_right() {
    let never: Vec<Fault> = OF_KEYS.map(Fault::Panic).into_iter().chain([Fault::Stuck]).collect();
    let expected: Vec<Fault> = OF_TASKS.into_iter().filter(|fault| !never.contains(fault)).collect();
    seeds(|| tasks(&Workloads), "tasks_keep_the_schedulers", &of_the_schedulers(2, 1), &expected);
}

/// Two schedulers whose caches are never old when one follows the other: no part of a node is given out by both, at any time.
#[test]
fn two_schedulers_give_out_no_part_twice() {
    let never = [Fault::StaleList, Fault::Slow, Fault::Deposed, Fault::Outage, Fault::Revoked];
    let never: Vec<Fault> = OF_KEYS.map(Fault::Panic).into_iter().chain(never).collect();
    let mut expected: Vec<Fault> = OF_TASKS.into_iter().filter(|fault| !never.contains(fault)).collect();
    expected.extend([Fault::Malformed, Fault::Terminating]);
    let run = || -> Run<'_> {
        let simulation = Simulation::of(&Parts { exact: true });
        Box::new(move |seed, options| simulation.run_tasks(seed, Options { calm: true, ..options }))
    };
    seeds(run, "two_schedulers_give_out", &of_the_schedulers(2, 2), &expected);
}

/// Two programs, each a scheduler and a descheduler, of which one leads.
#[test]
fn tasks_migrate_pods_whatever_happens() {
    let expected: Vec<Fault> = OF_TASKS.into_iter().chain([Fault::Malformed]).collect();
    let (chosen, evictions) = (chosen(2, 15), AtomicU64::new(0));
    let run = || -> Run<'_> {
        let (run, evictions) = (tasks(&Descheduling), &evictions);
        Box::new(move |seed, options| {
            let report = run(seed, options)?;
            evictions.fetch_add(report.bindings, Ordering::Relaxed);
            Ok(report)
        })
    };
    seeds(run, "tasks_migrate_pods", &chosen, &expected);
    let evictions = evictions.into_inner();
    println!("  evictions seen: {evictions}");
    assert!(evictions >= chosen.len() as u64, "only {evictions} evictions were seen");
}

#[test]
fn webhooks_answer_whatever_happens_to_them() {
    let mut expected = OF_TASKS.to_vec();
    expected.retain(|fault| ![Fault::Recreated, Fault::Stuck, Fault::Revoked].contains(fault));
    expected.extend([Fault::Malformed, Fault::Uncertified, Fault::Unconfigured]);
    let (chosen, promises) = (chosen(1, 100), AtomicU64::new(0));
    let run = || -> Run<'_> {
        let (run, promises) = (admission(), &promises);
        Box::new(move |seed, options| {
            let report = run(seed, options)?;
            promises.fetch_add(report.promises, Ordering::Relaxed);
            Ok(report)
        })
    };
    seeds(run, "webhooks_answer", &chosen, &expected);
    let promises = promises.into_inner();
    println!("  promises of quotas compared: {promises}");
    assert!(promises >= chosen.len() as u64, "only {promises} promises of quotas could be judged");
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
    let scenarios: [&dyn Scenario; 5] =
        [&NameCards, &MANAGER, &Scheduling { exact: true }, &Workloads, &Parts { exact: true }];
    for (scenario, seed) in scenarios.into_iter().zip([1, 2, 3, 4, 5]) {
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

/// Five thousand nodes of which each reports now and then what it reported before.
#[test]
fn a_quiet_cluster_sees_no_write() {
    let nodes = if number("SEEDS").is_some() { 5_000 } else { 200 };
    let quiet = simulation::quiet(nodes).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(quiet.writes_before > u64::from(nodes) * 3, "{quiet:?}");
    assert_eq!(quiet.writes, 0);
}

/// Recorded runs of all controllers are such that there is something to see.
#[test]
fn nodes_and_zones_offer_something_in_the_end() {
    let simulation = Simulation::of(&WholeManager { sensible: true });
    let states = (0..8).map(|seed| simulation.rounds(seed, None).unwrap_or_else(|failure| panic!("{failure}")).states);
    let state = serde_json::to_string(&states.collect::<Vec<_>>()).unwrap();
    let all = [
        r#""kubernetes.io/batch-cpu":"[1-9]"#,
        r#""kubernetes.io/mid-memory":"[1-9]"#,
        r#""koordinator.sh/gpu-core":"[1-9]"#,
        r#""available":"[1-9][^"]*","capacity":"[^"]*","name":"kubernetes.io/batch-memory""#,
        r#""quota.scheduling.koordinator.sh/is-root":"true""#,
        r#""node.koordinator.sh/cpu-normalization-ratio":"1[.][1-9]"#,
        r#""node.koordinator.sh/resource-amplification-ratio":"#,
        r#""by-c[0-3]":"[0-9]","last":"c"#,
        r#""tier":"t[0-9](-x[01])+-x[01]""#,
        r#""koordinator.sh/priority":"100[0-3]""#,
    ];
    for wanted in all {
        assert!(regex::Regex::new(wanted).unwrap().is_match(&state), "{wanted} is not in {state}");
    }
}

/// For every write of a recorded run: the same run, in which the program dies right after that write, ends each of its
/// rounds in the same state. A plain `cargo test` takes one write in ten.
#[test]
fn a_crash_after_any_write_changes_nothing_in_the_end() {
    let scenarios: [&dyn Scenario; 2] = [&Manager { sensible: true }, &WholeManager { sensible: true }];
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for scenario in scenarios {
        let seeds =
            number("SEED").map_or(0..number("SEEDS").map_or(1, |seeds| seeds.div_ceil(100)), |seed| seed..seed + 1);
        let one_in = if number("SEEDS").or(number("SEED")).is_some() { 1 } else { 10 };
        let simulation = Simulation::of(scenario);
        let (many, mut writes) = (15 * (seeds.end - seeds.start), 0);
        for seed in seeds {
            let recorded = simulation.rounds(seed, None).unwrap_or_else(|failure| panic!("{failure}"));
            writes += recorded.program_writes;
            let next = AtomicU64::new(1);
            let part = || {
                let simulation = Simulation::of(scenario);
                loop {
                    let after = next.fetch_add(one_in, Ordering::Relaxed);
                    if after > recorded.program_writes {
                        break;
                    }
                    ends_as_recorded(&simulation, seed, after, &recorded);
                }
            };
            thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(part))));
        }
        assert!(writes > many, "only {writes} writes in all recorded runs");
    }
}

fn ends_as_recorded(simulation: &Simulation<'_>, seed: u64, after: u64, recorded: &Rounds) {
    let crashed = simulation.rounds(seed, Some(after));
    let crashed = crashed.unwrap_or_else(|failure| panic!("crash after write {after}: {failure}"));
    assert_eq!(crashed.deaths, 1, "one death for each write");
    for (round, (found, expected)) in crashed.states.iter().zip(&recorded.states).enumerate() {
        let paths: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
        for path in paths {
            let (found, expected) = (found.get(path), expected.get(path));
            assert_eq!(
                found, expected,
                "seed {seed}, crash after write {after}, round {round}: {path}\n{}\nwithout the crash:\n{}",
                crashed.story, recorded.story
            );
        }
    }
}
