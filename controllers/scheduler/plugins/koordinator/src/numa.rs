//! NodeNUMAResource: pods get CPUs of their own, and resources of as few NUMA nodes as they ask for (`spec/scheduler.md` 3B).
//!
//! What a node has for a pod and gives it is in [`koord_scheduler_allocation::numa`]; its topology manager merges the hints of
//! several plugins about NUMA nodes.

mod answers;
mod asked;
mod numbered;
mod others;
mod plugin;
mod refused;
mod shown;
mod wanted;
mod ways;

pub use plugin::NodeNumaResource;
