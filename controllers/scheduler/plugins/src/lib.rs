//! The plugins of the scheduler: those of kube-scheduler that every profile begins with, and those of Koordinator.
//!
//! Each is a file that says what it refuses, how it compares nodes, and what it says about both
//! (`spec/scheduler.md` 3 and 4.6). [`build`] makes profiles of them. Read first: [`NodeResourcesFit`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod balanced_allocation;
mod default_preemption;
pub mod device_share;
mod node_affinity;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod registry;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod testing;
mod unbuilt;

pub use balanced_allocation::BalancedAllocation;
pub use default_preemption::DefaultPreemption;
pub use device_share::DeviceShare;
pub use node_affinity::NodeAffinity;
pub use node_ports::NodePorts;
pub use node_resources_fit::{NodeResourcesFit, Strategy, Weighted};
pub use node_unschedulable::NodeUnschedulable;
pub use registry::{BuiltProfile, Idle, ProfileError, build, default_profile};
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
pub use unbuilt::Unbuilt;
