//! Recorded cases of the node agent, played in process and in virtual time.
//!
//! A [`Case`] is a node as a folder tree, what kubelet, API server and runtimes give, and what the original did with it. [`play`] builds the tree, moves its
//! counters and the agent's clock together, and gives what was seen in the form of a recording; [`compare`] names what differs; a [`Report`] of many cases
//! fails on differences that are not known, and on known ones that are gone.
//!
//! The crate knows no agent: one that is to be played implements [`Agent`]. It writes files through the [`FixtureKernel`] of its [`Setup`], which does with
//! them what a kernel would.
//!
//! Read first: [`Agent`], [`Case`], [`Report`].
//!
//! ```
//! use std::time::Duration;
//!
//! use koord_koordlet_testing::{Agent, Corpus, Input, Output, check_all};
//!
//! /// Asks for pods once, and does nothing with them.
//! struct Lazy(bool);
//!
//! impl Agent for Lazy {
//!     fn due(&self) -> Option<Duration> {
//!         None
//!     }
//!     fn handle(&mut self, _: Duration, _: Input) {}
//!     fn advance_to(&mut self, _: Duration) -> Vec<Output> {
//!         let has_asked = std::mem::replace(&mut self.0, true);
//!         let request = Output::Kubelet { path: "/pods/".to_owned(), has_credentials: false };
//!         if has_asked { Vec::new() } else { vec![request] }
//!     }
//! }
//!
//! let corpus = Corpus::own();
//! let cases: Vec<_> = corpus.cases().into_iter().filter(|case| case.name == "batch-v1").collect();
//! let report = check_all(&corpus, &cases, &[], &|_| Ok(Box::new(Lazy(false))));
//! assert_eq!(report.counts(), (0, 1, 0));
//! assert!(report.judge("own/batch-v1: it does nothing").is_ok());
//! assert!(report.judge("").unwrap_err().contains("cpu.shares: recorded \"2560\", seen nothing"));
//! ```
// A case that is not what it should be ends the test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc)]

mod agent;
mod amount;
mod api_server;
mod calls;
mod case;
mod compare;
mod counters;
mod exposition;
mod fixtures;
mod kernel;
mod known;
mod kubelet;
mod memory;
mod messages;
mod names;
mod observed;
mod pattern;
mod play;
mod report;
mod start;
mod tree;
pub mod wire;

/// Where ours differs from the original and why: `group/name POINTER…: reason` a line, for [`Report::judge`]. Each reason is a
/// row of `docs/reference/divergences.md`.
pub const KNOWN_DIFFERENCES: &str = include_str!("../data/known-differences.txt");

pub use self::{
    agent::{Agent, Answer, ApiRequest, Event, Input, Output, Setup, Start},
    case::{Call, Case, Corpus, FileChange, MetricsWanted, Step},
    compare::{Difference, compare, lines, names_the_same_cpus},
    counters::Counters,
    fixtures::{CgroupFiles, Fixtures, Machine},
    kernel::{FixtureKernel, Written},
    names::Names,
    play::play,
    report::{Outcome, PROCESS_CASES, Report, check, check_all, is_chosen},
    start::scratch_folder,
    tree::Tree,
};
