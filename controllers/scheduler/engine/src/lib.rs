//! The scheduling engine: the queue of pods, and what is done with one, from the queue to the binding.
//!
//! It is given nodes, pods, the time and random numbers, and returns what is to be done. It has no client, no tasks, no clock
//! and no randomness of its own, so a scheduler, a simulation and the diagnosis of a pod run the same code.
//!
//! Read first: [`Engine`] (cluster, queue and profiles together), and its `schedule_one` (an attempt, from NextPod to Bind).
//! What plugins are and see is in [`koord_scheduler_framework`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod engine;
pub mod queue;

pub use engine::*;
