//! The CPUs and NUMA nodes of a node, and what pods have of them.
//!
//! A [`Stock`](allocate::Stock) is what a [`NumaNode`](node::NumaNode) has for a pod, and gives it CPUs and shares of NUMA nodes; the
//! [`accumulator`] chooses the CPUs. The [`state`] follows every pod that is placed and removed.

pub mod accumulator;
pub mod allocate;
pub mod double_allocations;
pub mod enough;
pub mod hints;
pub mod ledger;
pub mod node;
pub mod policy;
pub mod report;
pub mod score;
pub mod state;
pub mod stock_provider;
pub mod topology_manager;
pub mod zone;

pub use self::double_allocations::double_allocations;
