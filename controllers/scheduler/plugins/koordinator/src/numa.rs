//! NodeNUMAResource: pods get exclusive CPUs, and resources of as few NUMA nodes as they request (`spec/scheduler.md` 3B).
//!
//! What a node has for a pod and gives it is in [`koord_scheduler_allocation::numa`]; its topology manager merges the hints of
//! several plugins about NUMA nodes.

mod answers;
mod node_views;
mod numbered_requests;
mod others;
mod plugin;
mod pre_filter_state;
mod refused;
mod resource_options;
mod shown;

pub use plugin::NodeNumaResource;
