//! Placement of GPU pods on traces: `cargo bench -p koord-scheduler-plugins --bench quality -- FOLDER [TRACE...]`.
//!
//! The folder has the files of the openb traces, by their own names; traces are `default`, `cpu100` and so on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss, missing_docs)]

#[path = "../tests/openb/mod.rs"]
mod openb;

use std::{path::PathBuf, time::Instant};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let folder = PathBuf::from(arguments.next().expect("the folder with the traces"));
    let named: Vec<String> = arguments.collect();
    let traces = if named.is_empty() { vec!["default".to_owned(), "cpu100".to_owned()] } else { named };
    let nodes = openb::nodes(&folder);
    println!("| trace | strategy | GPUs given out | lost | pods/s |\n|---|---|---|---|---|");
    for trace in &traces {
        let pods = openb::requests(&folder, trace);
        for strategy in ["LeastAllocated", "MostAllocated", "LeastFragmented"] {
            let start = Instant::now();
            let all: Vec<openb::Outcomes> = SEEDS.map(|seed| openb::replay(&nodes, &pods, seed, strategy)).collect();
            let speed = all.iter().map(|one| one.attempts).sum::<usize>() as f64 / start.elapsed().as_secs_f64();
            let mean = |of: fn(&openb::Outcomes) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
            let (allocated, fragmented) = (mean(|one| one.allocated), mean(|one| one.fragmented));
            println!("| {trace} | {strategy} | {allocated:.2} % | {fragmented:.2} % | {speed:.0} |");
        }
    }
}
