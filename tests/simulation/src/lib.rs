//! A cluster in one thread, in virtual time, from a seed.
//!
//! The embedded server's core, the watches, caches, queues and controllers of a program, and the people who change
//! things are state machines here; a seeded choice decides which of them makes the next step and what goes wrong on
//! the way. The same seed gives the same run, down to the hash of its trace. When the faults stop, what is must
//! become what should be, and then nothing may be written any more.
//!
//! Read first: [`Scenario`] (who is simulated), [`Simulation`] (its runs), [`Fault`] (what goes wrong).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod admission;
mod connection;
mod fault;
pub mod manager;
pub mod name_cards;
mod network;
mod oracle;
mod panics;
pub mod parts;
mod people;
mod program;
mod quiet;
mod replica;
mod rounds;
mod run;
mod scenario;
pub mod scheduling;
mod stage;
mod tasks;
mod trace;
mod waiting;
pub mod whole_manager;
mod witness;
pub mod workloads;
mod world;

pub use admission::Admission;
pub use fault::Fault;
pub use program::Program;
pub use quiet::{Quiet, quiet};
pub use rounds::{Rounds, State};
pub use run::{Failure, Options, Report, Simulation};
pub use scenario::{Disturbance, Scenario};
pub use stage::Stage;
