//! What a scheduler makes of a cluster in virtual time: pods come, are placed by its own engine, end, and leave room for others.
//!
//! Nothing is asked of a server. What the scheduler writes is written into objects in memory, from which its caches are fed; a
//! pod that is bound runs at once. The same objects, pods and seed give the same outcome. The crate knows no flags, and not how
//! an outcome is shown.
//!
//! Read first: [`Scenario`] (what happens), [`run`] (which plays it), [`Outcome`] (what came of it).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod listener;
mod measure;
pub mod outcome;
mod pods;
mod scenario;
mod simulation;
mod survey;
mod trace;
mod world;

pub use self::{
    outcome::Outcome,
    scenario::{Arrival, DURATION, Scenario},
    simulation::{End, Progress, play, run},
    trace::{Replay, Trace},
};
