//! The node agent on trees of files, in virtual time, under faults that follow from a seed.
//!
//! A plain `cargo test` runs a few; CI and a night run more, optimised:
//! `KOORDLET_SEEDS=5000 cargo --config tests/optimised.toml test --workspace --test seeds the_node_agent`. `FIRST=42000` continues a night, and `SEED=4711`
//! runs one seed and prints its story.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod kernel;
mod long;
mod node;
mod pods;
mod scenario;
mod site;

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write as _},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use koord_koordlet_testing::{Corpus, Fixtures};

use self::{
    scenario::{FAULTS, Fault, Report},
    site::Warnings,
};

/// One seed in so many is run twice, and must give the same run.
const TWICE: u64 = 10;
/// After so many seeds that went wrong, no others are begun.
const FAILURES_MAX: usize = 5;
/// So many seeds are reported at once when there are many.
const PROGRESS: u64 = 1000;

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn run_seed(seed: u64, fixtures: &Fixtures) -> Result<Report, String> {
    let is_chosen = number("SEED").is_some();
    let report = scenario::run(seed, fixtures, is_chosen)?;
    if (seed.is_multiple_of(TWICE) || is_chosen) && scenario::run(seed, fixtures, false)? != report {
        return Err(format!("seed {seed} does not give the same run twice"));
    }
    Ok(report)
}

#[test]
fn the_node_agent_survives_everything() {
    const NAME: &str = "the_node_agent_survives_everything";
    let seeds = number("KOORDLET_SEEDS").or(number("SEEDS")).unwrap_or(20);
    let (first, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (number("FIRST").unwrap_or_default(), seeds),
    };
    let (begun, next, failures) = (Instant::now(), AtomicU64::new(first), Mutex::new(Vec::new()));
    let part = || {
        let fixtures = Fixtures::in_folder(Corpus::own().fixtures());
        let mut all = Report::default();
        while failures.lock().unwrap().len() < FAILURES_MAX {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                break;
            }
            let run = || tracing::subscriber::with_default(Warnings, || run_seed(seed, &fixtures));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            match result.unwrap_or_else(|_| Err(format!("seed {seed} panics"))) {
                Ok(report) => {
                    for (fault, times) in report.faults {
                        *all.faults.entry(fault).or_default() += times;
                    }
                    all.evictions += report.evictions;
                    all.refusals += report.refusals;
                    all.compared += report.compared;
                }
                Err(failure) => {
                    let command = "cargo --config tests/optimised.toml test --workspace --test seeds";
                    let failure = format!("{failure}\nagain: SEED={seed} {command} {NAME}");
                    _ = writeln!(io::stderr(), "{NAME}: {failure}");
                    failures.lock().unwrap().push(failure);
                }
            }
            if (seed + 1).is_multiple_of(PROGRESS) {
                let rate = (seed - first) as f64 / begun.elapsed().as_secs_f64();
                _ = writeln!(io::stderr(), "{NAME}: {seed} of {end} seeds, {rate:.0} per second");
            }
        }
        all
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let reports: Vec<Report> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(part)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} seeds went wrong:\n{}", failures.len(), failures.join("\n"));
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    let (evictions, refusals, compared) =
        (sum(|report| report.evictions), sum(|report| report.refusals), sum(|report| report.compared));
    let mut faults: BTreeMap<Fault, u64> = BTreeMap::new();
    for (fault, times) in reports.iter().flat_map(|report| &report.faults) {
        *faults.entry(*fault).or_default() += times;
    }
    println!("{NAME}: {} seeds in {:.1?}", end - first, begun.elapsed());
    println!("  {faults:?}\n  {evictions} evictions, {refusals} refused writes, {compared} files compared");
    if end - first >= 20 {
        let missing: Vec<&Fault> = FAULTS.iter().filter(|fault| !faults.contains_key(fault)).collect();
        assert!(missing.is_empty(), "these faults never struck: {missing:?}");
        assert!(evictions > 0 && refusals >= end - first && compared >= 20 * (end - first));
    }
}
