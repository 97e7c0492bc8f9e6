//! How fast pods are scheduled, by a scenario of nodes and pods: `koordctl bench`.
//!
//! A scenario is played against an API server, whoever schedules there; what the watch shows of its pods is the result. The crate starts
//! no server and no scheduler.
//!
//! Read first: [`Scenario`] (what is measured), [`Run`] (how it is played), [`Outcome`] (what came of it).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod objects;
mod pace;
mod player;
mod pods;
mod progress;
mod result;
mod scenario;
pub mod summary;
mod template;

pub use self::{
    objects::Objects,
    player::Run,
    pods::Pods,
    result::{Baseline, Outcome},
    scenario::{LIST, Scenario, Thresholds, builtin, list, names},
    template::RUN_LABEL,
};
