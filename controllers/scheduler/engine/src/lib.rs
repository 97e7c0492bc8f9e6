//! The scheduling engine: the state of the cluster as columns, the queue of pods, and the cycle that finds a node for one.
//!
//! It is given nodes, pods, the time and random numbers, and returns what is to be done. It has no client, no tasks, no clock
//! and no randomness of its own, so a scheduler, a simulation and the question "why not there" run the same code.
//!
//! Read first: [`cluster::Cluster`] (the state), [`framework::Plugin`] (what decides), [`engine::Engine`] (both together with the queue).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod affinity;
pub mod best;
pub mod cluster;
pub mod columns;
pub mod cycle;
pub mod dynamic;
pub mod engine;
pub mod event;
pub mod extender;
pub mod framework;
pub mod hold;
pub mod host_ports;
pub mod labels;
pub mod node;
pub mod object;
pub mod pod;
pub mod policy;
pub mod preemption;
pub mod queue;
pub mod shown;
pub mod template;
pub mod timing;
pub mod volume;
pub mod workload;

pub use crate::cluster::state;

/// What most plugins name: `use koord_engine::prelude::*`.
pub mod prelude {
    pub use crate::{
        cluster::Cluster,
        columns::Row,
        event::{Event, Events},
        framework::*,
        node::Node,
        pod::Pod,
    };
}
