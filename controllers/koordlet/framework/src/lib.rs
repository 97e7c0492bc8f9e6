//! The words of the node agent: pods and the node as it sees them, and what strategies want.
//!
//! Read first: [`Pod`], what the kubelet says of a pod and which cgroups follow from it; [`NodeTopology`], the CPUs and who may use them; [`NodeSlo`], the
//! strategies of the node; [`Constraint`], what a strategy wants a file to say, with its [`Reason`]. Strategies and hooks give constraints, the resolver makes
//! one value of them for each file.
//!
//! Nothing here reads, writes or knows the time.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod constraint;
mod host_application;
mod kubelet;
mod node;
mod pod;
mod slo;
mod topology;

pub use constraint::{Bound, Constraint, Constraints, Precedence, Reason, Target};
pub use host_application::host_application_cgroup;
pub use kubelet::{DOCKER_TYPE, PodList, PodListError, PodReader, RefusedPod, read_pod};
pub use node::Node;
pub use pod::{Container, ContainerKind, ContainerState, Phase, Pod, Volume};
pub use slo::{NodeSlo, NodeSloError, NodeSloReader};
pub use topology::{CpuPool, NodeTopology, SystemCpus};
