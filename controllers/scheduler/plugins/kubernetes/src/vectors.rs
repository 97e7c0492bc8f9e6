//! The cases of kube-scheduler's own table tests, by plugin: `docs/reference/scheduler-cases.md` lists which table is held by which test.
//! Those of volumes are beside the plugins of volumes.

mod balanced_allocation;
mod image_locality;
pub(crate) mod inter_pod_affinity;
mod inter_pod_affinity_scores;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_resources_scores;
mod node_unschedulable;
pub(crate) mod pod_topology_spread;
mod pod_topology_spread_scores;
mod preemption;
mod preemption_choice;
mod scheduling_gates;
mod taint_toleration;
