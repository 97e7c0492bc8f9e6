//! The plugins of kube-scheduler, that every profile begins with; extenders; and nodes whose kubelet has just rejected a pod.
//!
//! Each is a file that says what it refuses, how it compares nodes, and what it says about both (`spec/scheduler.md` 3 and 4.6). They see the
//! snapshot: they know no objects of the API server, no tasks, and not each other.
//!
//! Read first: [`TaintToleration`] (a plugin), [`koord_scheduler_framework`] (what a plugin may implement).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod balanced_allocation;
mod default_preemption;
mod dynamic_resources;
mod extenders;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_ports;
mod node_rejections;
mod node_resources_fit;
mod node_unschedulable;
mod pod_topology_spread;
mod rated;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod vectors;
mod volumes;

pub use balanced_allocation::BalancedAllocation;
pub use default_preemption::DefaultPreemption;
pub use dynamic_resources::DynamicResources;
pub use extenders::Extenders;
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinity;
pub use node_ports::NodePorts;
pub use node_rejections::NodeRejections;
pub use node_resources_fit::{NodeResourcesFit, Strategy, Weighted};
pub use node_unschedulable::NodeUnschedulable;
pub use pod_topology_spread::{DefaultConstraints, PodTopologySpread};
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
pub use volumes::{NodeVolumeLimits, VolumeBinding, VolumeRestrictions, VolumeZone};

#[cfg(test)]
mod testing {
    use std::sync::Arc;

    use koord_config::scheduler::SchedulerConfiguration;
    use koord_scheduler_framework::{Plugin, Profile};

    use super::*;

    /// The profile of kube-scheduler, for pods that name the scheduler `test`. Only what tests ask for is in it.
    pub(crate) fn default_profile() -> Profile {
        let resolved = SchedulerConfiguration::without_document().profiles.swap_remove(0).resolved();
        let plugins: [(Arc<dyn Plugin>, i64); 14] = [
            (Arc::new(NodeUnschedulable), 0),
            (Arc::new(TaintToleration), 3),
            (Arc::new(NodeAffinity::new(resolved.args().unwrap()).unwrap()), 2),
            (Arc::new(NodePorts), 0),
            (Arc::new(NodeResourcesFit::new(resolved.args().unwrap())), 1),
            (Arc::new(VolumeRestrictions), 0),
            (Arc::new(NodeVolumeLimits), 0),
            (Arc::new(VolumeBinding::new(&resolved.args().unwrap())), 1),
            (Arc::new(PodTopologySpread::new(&resolved.args().unwrap())), 2),
            (Arc::new(InterPodAffinity::new(&resolved.args().unwrap())), 2),
            (Arc::new(DynamicResources::new(&|_| false)), 2),
            (Arc::new(DefaultPreemption::new(&resolved.args().unwrap())), 0),
            (Arc::new(BalancedAllocation::new(resolved.args().unwrap())), 1),
            (Arc::new(ImageLocality), 1),
        ];
        let mut profile = Profile { scheduler: "test".into(), ..Profile::default() };
        for (plugin, weight) in plugins {
            profile.add(plugin.register(), weight).unwrap();
        }
        profile
    }
}
