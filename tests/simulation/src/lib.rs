//! Koordinator's programs in one thread, in virtual time, from a seed.
//!
//! `koord-simulator` plays a program step by step; here are what it plays, who judges the scheduler, and runs through the
//! real tasks, with several replicas and with webhooks, on paused time. When the faults stop, what is must become what
//! should be, and then nothing may be written any more. There are no sockets
//! and no real time.
//!
//! Read first: [`Scenario`] (who is simulated), [`Simulation`] (its runs), [`Fault`] (what goes wrong).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod admission;
mod companion;
pub mod descheduling;
pub mod manager;
pub mod name_cards;
mod network;
mod oracle;
pub mod parts;
mod quiet;
mod replica;
mod scenario;
pub mod scheduling;
mod simulation;
mod tasks;
mod waiting;
pub mod whole_manager;
mod witness;
pub mod workloads;

pub use admission::Admission;
use koord_simulator::people;
pub use koord_simulator::{Disturbance, Failure, Fault, Rounds, Stage, State};
pub use quiet::{Quiet, quiet};
pub use scenario::{Install, Scenario};
pub use simulation::{Options, Report, Simulation};
