//! Random clusters whose placements are legal, and in which no pod waits beside a place for it. A plain `cargo test` plays a few
//! hundred; `SEEDS=20000` more, `FIRST=20000` goes on where a night ended, and `SEED=4711` plays one and
//! prints its pods and the objects of its end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use clusters::{Seen, check};

/// Seeds of a plain test.
const FEW: u64 = 400;
/// After so many seeds that went wrong, no others are begun.
const FAILURES_MAX: usize = 20;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn random_clusters_are_legal_and_nobody_is_overlooked() {
    let first = number("SEED").or(number("FIRST")).unwrap_or_default();
    let count = if number("SEED").is_some() { 1 } else { number("SEEDS").unwrap_or(FEW) };
    let (next, wrong) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let part = || {
        let mut seen = Seen::default();
        while wrong.lock().unwrap().len() < FAILURES_MAX {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                break;
            }
            match check(seed) {
                Ok(one) => seen = seen.and(one),
                Err(error) => wrong.lock().unwrap().push(error),
            }
        }
        seen
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let seen = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(part)).collect();
        threads.into_iter().fold(Seen::default(), |seen, thread| seen.and(thread.join().unwrap()))
    });
    println!("{count} clusters: {seen:?}");
    if let Some(seed) = number("SEED") {
        let scenario = clusters::draw::scenario(seed);
        scenario.arrivals.iter().for_each(|arrival| println!("{:?}: {}", arrival.at, arrival.pod));
        clusters::played(&scenario).unwrap().objects.iter().for_each(|object| println!("at the end: {object}"));
    }
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} clusters are wrong; SEED=N plays one:\n{}", wrong.len(), wrong.join("\n"));
    if count >= FEW {
        let Seen { placed, waiting, gpus, cpus, numa, owners, gangs } = seen;
        let least = usize::try_from(count / 5).unwrap();
        let seldom = [placed, waiting, gpus, cpus, numa, owners, gangs].into_iter().any(|times| times < least);
        assert!(!seldom, "something that is to be tried is seldom: {seen:?}");
    }
}
