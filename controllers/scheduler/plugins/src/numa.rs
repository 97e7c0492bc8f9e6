//! NodeNUMAResource: pods get CPUs of their own, and resources of as few NUMA nodes as they ask for (`spec/scheduler.md` 3B).
//!
//! What is decided is a function of plain values: a [`Stock`](allocate::Stock) is what a [`NumaNode`](node::NumaNode) has for
//! a pod, and gives it CPUs and shares of NUMA nodes; the [`manager`] brings the wishes of several plugins about NUMA nodes
//! together. The [`state`] follows every pod that is placed and removed.

mod accumulator;
mod allocate;
mod answers;
mod asked;
mod audit_twice;
mod enough;
mod hints;
mod ledger;
mod manager;
mod node;
mod numbered;
mod others;
mod own;
mod plugin;
mod policy;
mod refused;
mod report;
mod score;
mod shown;
mod state;
mod wanted;
mod ways;
mod zone;

pub use accumulator::CpuCase;
pub use plugin::NodeNumaResource;
#[cfg(test)]
pub(crate) use state::NumaHold;
