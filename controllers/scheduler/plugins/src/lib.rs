//! The plugins of the scheduler: those of kube-scheduler that every profile begins with, and those of Koordinator.
//!
//! Each is a file that says what it refuses, how it compares nodes, and what it says about both
//! (`spec/scheduler.md` 3 and 4.6). [`build`] makes profiles of them. They see the state of the engine: they know no objects of
//! the API server, no tasks, and not each other.
//!
//! Read first: [`NodeResourcesFit`] (a plugin), [`koord_scheduler_framework`] (what a plugin may implement).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod allocation;
mod balanced_allocation;
pub mod coscheduling;
mod default_preemption;
pub mod device_share;
mod dynamic_resources;
pub mod elastic_quota;
mod extenders;
mod image_locality;
mod inter_pod_affinity;
pub mod load_aware;
mod node_affinity;
mod node_ports;
mod node_rejections;
mod node_resources_fit;
mod node_resources_fit_plus;
mod node_unschedulable;
mod numa;
mod pod_topology_spread;
mod rated;
mod registry;
pub mod reservation;
mod scarce_resource_avoidance;
mod scheduling_gates;
mod scheduling_hint;
mod taint_toleration;
#[cfg(test)]
mod testing;
mod texts;
#[cfg(test)]
mod vectors;
mod volumes;

pub use balanced_allocation::BalancedAllocation;
pub use coscheduling::Coscheduling;
pub use default_preemption::DefaultPreemption;
pub use device_share::DeviceShare;
pub use dynamic_resources::DynamicResources;
pub use extenders::Extenders;
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinity;
pub use node_ports::NodePorts;
pub use node_rejections::NodeRejections;
pub use node_resources_fit::{NodeResourcesFit, Strategy, Weighted};
pub use node_resources_fit_plus::NodeResourcesFitPlus;
pub use node_unschedulable::NodeUnschedulable;
#[doc(hidden)]
pub use numa::CpuCase;
pub use numa::NodeNumaResource;
pub use pod_topology_spread::{DefaultConstraints, PodTopologySpread};
pub use registry::{
    ArgsError, BuiltProfile, Dependencies, Idle, ProfileError, build, build_with, default_profile, reads,
};
pub use reservation::Reservation;
pub use scarce_resource_avoidance::ScarceResourceAvoidance;
pub use scheduling_gates::SchedulingGates;
pub use scheduling_hint::SchedulingHint;
pub use taint_toleration::TaintToleration;
pub use volumes::{NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone};
