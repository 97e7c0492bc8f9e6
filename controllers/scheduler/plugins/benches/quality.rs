//! Placement of GPU pods on traces: `cargo bench -p koord-scheduler-plugins --bench quality -- FOLDER [TRACE...]`.
//!
//! The folder has the files of the openb traces, by their own names; traces are `default`, `cpu100` and so on. A replay is timed by the
//! CPU time of its arrivals, and the exit code is 1 where it took longer than is its goal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, missing_docs)]

mod clock;
#[path = "../tests/openb/mod.rs"]
mod openb;

use std::{path::PathBuf, process::ExitCode, time::Duration};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;

/// Each strategy with the time in which a replay is to be over.
const STRATEGIES: [(&str, Duration); 3] = [
    ("LeastAllocated", Duration::from_millis(50)),
    ("MostAllocated", Duration::from_millis(50)),
    ("LeastFragmented", Duration::from_millis(150)),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let folder = PathBuf::from(arguments.next().expect("the folder with the traces"));
    let named: Vec<String> = arguments.collect();
    let traces = if named.is_empty() { vec!["default".to_owned(), "cpu100".to_owned()] } else { named };
    let nodes = openb::nodes(&folder);
    let mut is_reached = true;
    println!("| trace | strategy | GPUs given out | lost | pods/s | a replay | goal |\n|---|---|---|---|---|---|---|");
    for trace in &traces {
        let pods = openb::requests(&folder, trace);
        for (strategy, goal) in STRATEGIES {
            let replay = |seed| openb::replay(&nodes, &pods, seed, strategy, clock::clock);
            let (all, taken): (Vec<openb::Outcomes>, Vec<Duration>) = SEEDS.map(replay).unzip();
            let taken: Duration = taken.iter().sum();
            let speed = all.iter().map(|one| one.attempts).sum::<usize>() as f64 / taken.as_secs_f64();
            let mean = |of: fn(&openb::Outcomes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            let (allocated, fragmented) = (mean(|one| one.allocated), mean(|one| one.fragmented));
            let each = taken / all.len() as u32;
            is_reached &= each <= goal;
            println!(
                "| {trace} | {strategy} | {allocated:.2} % | {fragmented:.2} % | {speed:.0} | {each:.0?} | {goal:?} |"
            );
        }
    }
    if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
