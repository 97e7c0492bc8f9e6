//! Recorded cases of the original agent, played against ours: in process, in virtual time, with the flags and the tree of each case.
//!
//! The small corpus of the player is always played; the recordings of the original too, where they are beside the repository or where `KOORD_SHARED` is.
//! `GROUP=hooks` plays one group, `CASE=hooks/NAME` one case.
#![allow(clippy::unwrap_used, clippy::panic)]

mod differences;
mod hook_calls;
mod node_agent;
mod pages;
mod state;

use std::time::Instant;

use koord_koordlet_testing::{Case, Corpus, KNOWN_DIFFERENCES, PROCESS_CASES, check_all, is_chosen};

use self::node_agent::NodeAgent;

fn check(name: &str, corpus: &Corpus, known: &str) {
    let began = Instant::now();
    let cases: Vec<Case> = corpus.cases().into_iter().filter(is_chosen).collect();
    let report = check_all(corpus, &cases, PROCESS_CASES, &NodeAgent::start);
    println!("{name}: {} cases in {:.1?}\n{report}", cases.len(), began.elapsed());
    report.judge(known).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn the_small_corpus_has_no_differences() {
    check("own", &Corpus::own(), "");
}

#[test]
fn recordings_of_the_original_differ_only_where_that_is_known() {
    match Corpus::recorded() {
        Some(corpus) => check("recorded", &corpus, KNOWN_DIFFERENCES),
        None => programs::skipped("recordings of the original", "they are not beside the repository"),
    }
}
