//! Placement of GPU pods on traces: `cargo bench -p koord-scheduler-assembly --bench quality -- [FOLDER [TRACE...]]`.
//!
//! The folder has the files of the openb traces, by their own names; by default it is the one beside the repository. Traces are `default`,
//! `cpu100` and so on. Where there is no such folder nothing is played. The exit code is 2 where LeastFragmented gives out fewer GPUs, or
//! loses more, than FGD, in the mean of ten seeds, on whole nodes and where CPU is scarce. It is 1 where only a goal is missed for the CPU time that the
//! arrivals of a replay take, and that is not known (`tests/data/missed-goals.json`) or worse than is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, missing_docs)]

#[path = "../tests/openb/mod.rs"]
mod openb;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use goals::{Goals, Rounds};

use self::openb::{FGD, Outcomes, Reached};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;

/// Each strategy with the time in which a replay is to be over.
const STRATEGIES: [(&str, Duration); 3] = [
    ("LeastAllocated", Duration::from_millis(50)),
    ("MostAllocated", Duration::from_millis(50)),
    ("LeastFragmented", Duration::from_millis(150)),
];

/// The GPUs that are given out, and those that are lost, in percent.
fn means(all: &[Outcomes]) -> (f64, f64) {
    let mean = |of: fn(&Outcomes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    (mean(|one| one.allocated), mean(|one| one.fragmented))
}

/// How long a replay takes.
fn mean_of(taken: &[Duration]) -> Duration {
    taken.iter().sum::<Duration>() / u32::try_from(taken.len()).unwrap_or(1)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let named = arguments.next().map_or_else(openb::beside, PathBuf::from);
    let Some(folder) = openb::there(named) else { return ExitCode::SUCCESS };
    let named: Vec<String> = arguments.collect();
    let traces = if named.is_empty() { vec!["default".to_owned(), "cpu100".to_owned()] } else { named };
    let whole = openb::nodes(&folder, 100);
    let (goals, mut is_in_time, mut worse) = (Goals::load(), true, Vec::new());
    println!(
        "| trace | strategy | GPUs given out | lost | pods/s | a replay | goal | |\n|---|---|---|---|---|---|---|---|"
    );
    for trace in &traces {
        let pods = openb::requests(&folder, trace);
        for (strategy, goal) in STRATEGIES {
            let replay = |seed| openb::replay(&whole, &pods, seed, strategy, goals::clock);
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let judged =
                |each| goals.at_most(&format!("openb {trace}, {strategy}: a replay"), "ms", ms(each), ms(goal));
            let (all, taken): (Vec<Outcomes>, Vec<Duration>) = SEEDS.map(replay).unzip();
            let mut each = mean_of(&taken);
            let mut verdict = judged(each);
            let mut rounds = Rounds::default();
            while rounds.again(usize::from(verdict.is_failure())) {
                let taken: Vec<Duration> = SEEDS.map(|seed| replay(seed).1).collect();
                each = each.min(mean_of(&taken));
                verdict = judged(each);
            }
            let attempts = all.iter().map(|one| one.attempts).sum::<usize>() as f64 / all.len() as f64;
            let speed = attempts / each.as_secs_f64();
            let (allocated, fragmented) = means(&all);
            is_in_time &= !verdict.is_failure();
            println!(
                "| {trace} | {strategy} | {allocated:.2} % | {fragmented:.2} % | {speed:.0} | {each:.0?} | {goal:?} | {} |",
                verdict.words()
            );
            let is_same = |fgd: &Reached| fgd.trace == trace && fgd.cpu_percent == 100 && strategy == "LeastFragmented";
            worse.extend(FGD.into_iter().filter(is_same).filter(|fgd| !fgd.is_reached(allocated, fragmented)));
        }
    }
    for fgd in FGD.into_iter().filter(|fgd| fgd.cpu_percent < 100 && traces.iter().any(|trace| trace == fgd.trace)) {
        let (nodes, pods) = (openb::nodes(&folder, fgd.cpu_percent), openb::requests(&folder, fgd.trace));
        let replay = |seed| openb::replay(&nodes, &pods, seed, "LeastFragmented", || Duration::ZERO).0;
        let (allocated, fragmented) = means(&SEEDS.map(replay).collect::<Vec<_>>());
        println!("{fgd:?}; LeastFragmented: {allocated:.2} % given out, {fragmented:.2} % lost");
        worse.extend((!fgd.is_reached(allocated, fragmented)).then_some(fgd));
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
