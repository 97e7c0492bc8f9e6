//! Placement of GPU pods on traces: `cargo bench -p koord-scheduler-plugins --bench quality -- [FOLDER [TRACE...]]`.
//!
//! The folder has the files of the openb traces, by their own names; by default it is the one beside the repository. Traces are `default`,
//! `cpu100` and so on. Where there is no such folder nothing is played. The exit code is 2 where LeastFragmented gives out fewer GPUs, or
//! loses more, than was published for FGD, in the mean of ten seeds. It is 1 where only a goal is missed for the CPU time that the
//! arrivals of a replay take, and that is not known (`tests/data/missed-goals.json`) or worse than is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, missing_docs)]

mod clock;
#[path = "../tests/openb/mod.rs"]
mod openb;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use goals::Goals;

use self::openb::{FGD, Outcomes};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;

/// Each strategy with the time in which a replay is to be over.
const STRATEGIES: [(&str, Duration); 3] = [
    ("LeastAllocated", Duration::from_millis(50)),
    ("MostAllocated", Duration::from_millis(50)),
    ("LeastFragmented", Duration::from_millis(150)),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let named = arguments.next().map_or_else(openb::beside, PathBuf::from);
    let Some(folder) = openb::there(named) else { return ExitCode::SUCCESS };
    let named: Vec<String> = arguments.collect();
    let traces = if named.is_empty() { vec!["default".to_owned(), "cpu100".to_owned()] } else { named };
    let nodes = openb::nodes(&folder);
    let (goals, mut is_in_time, mut worse) = (Goals::load(), true, Vec::new());
    println!(
        "| trace | strategy | GPUs given out | lost | pods/s | a replay | goal | |\n|---|---|---|---|---|---|---|---|"
    );
    for trace in &traces {
        let pods = openb::requests(&folder, trace);
        for (strategy, goal) in STRATEGIES {
            let replay = |seed| openb::replay(&nodes, &pods, seed, strategy, clock::clock);
            let (all, taken): (Vec<Outcomes>, Vec<Duration>) = SEEDS.map(replay).unzip();
            let taken: Duration = taken.iter().sum();
            let speed = all.iter().map(|one| one.attempts).sum::<usize>() as f64 / taken.as_secs_f64();
            let mean = |of: fn(&Outcomes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            let (allocated, fragmented) = (mean(|one| one.allocated), mean(|one| one.fragmented));
            let each = taken / all.len() as u32;
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let verdict = goals.at_most(&format!("openb {trace}, {strategy}: a replay"), "ms", ms(each), ms(goal));
            is_in_time &= !verdict.is_failure();
            println!(
                "| {trace} | {strategy} | {allocated:.2} % | {fragmented:.2} % | {speed:.0} | {each:.0?} | {goal:?} | {} |",
                verdict.words()
            );
            let fgd = FGD.into_iter().find(|fgd| fgd.trace == trace && strategy == "LeastFragmented");
            worse.extend(fgd.filter(|fgd| !fgd.is_reached(allocated, fragmented)));
        }
    }
    for fgd in &worse {
        println!("LeastFragmented is worse than FGD: {fgd:?}");
    }
    match (worse.is_empty(), is_in_time) {
        (false, _) => ExitCode::from(2),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    }
}
