//! The plugins of kubernetes-sigs/descheduler: DefaultEvictor and the ten strategies, one file each.
//!
//! Read first: [`RemoveFailedPods`] (the smallest strategy), [`DefaultEvictor`] (which pods may be evicted).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod default_evictor;
mod high_node_utilization;
mod low_node_utilization;
mod node_utilization;
mod pod_life_time;
mod remove_duplicates;
mod remove_failed_pods;
mod remove_pods_having_too_many_restarts;
mod remove_pods_violating_inter_pod_anti_affinity;
mod remove_pods_violating_node_affinity;
mod remove_pods_violating_node_taints;
mod remove_pods_violating_topology_spread_constraint;
mod selection;

pub use self::{
    default_evictor::DefaultEvictor, high_node_utilization::HighNodeUtilization,
    low_node_utilization::LowNodeUtilization, pod_life_time::PodLifeTime, remove_duplicates::RemoveDuplicates,
    remove_failed_pods::RemoveFailedPods, remove_pods_having_too_many_restarts::RemovePodsHavingTooManyRestarts,
    remove_pods_violating_inter_pod_anti_affinity::RemovePodsViolatingInterPodAntiAffinity,
    remove_pods_violating_node_affinity::RemovePodsViolatingNodeAffinity,
    remove_pods_violating_node_taints::RemovePodsViolatingNodeTaints,
    remove_pods_violating_topology_spread_constraint::RemovePodsViolatingTopologySpreadConstraint,
};

/// Why a plugin cannot be made of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    #[error("{field}: {error}")]
    Selector { field: &'static str, error: String },
}
