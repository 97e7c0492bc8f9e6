//! NodeNUMAResource: pods get CPUs of their own, and resources of as few NUMA nodes as they ask for (`spec/scheduler.md` 3B).
//!
//! What is decided is a function of plain values: [`allocate`](allocate::allocate) gives a pod CPUs and shares of NUMA nodes of a
//! [`NumaNode`](node::NumaNode), [`manager`] brings the wishes of several plugins about NUMA nodes together.

mod accumulator;
mod allocate;
mod asked;
mod devices;
mod hints;
mod ledger;
mod manager;
mod node;
mod plugin;
mod policy;
mod score;
mod state;
mod wanted;

pub use plugin::NodeNumaResource;
