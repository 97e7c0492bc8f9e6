//! A fleet of machines that are not there.
//!
//! Hollow nodes register themselves and renew their leases, a hollow kubelet lets bound pods run and finishes their deletion, a hollow koordlet
//! reports how busy each node is, and ReplicaSets keep their number of pods. What they write is decided by pure functions of a seed and the time: [`node`], [`pod`], [`usage`].
//!
//! Nothing here knows a server; anything that `kube::Client` can reach will do. Read first: [`Fleet`] (the nodes of a seed),
//! [`Kubelet`] and [`Koordlet`] (what runs on them).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod fleet;
pub mod koordlet;
pub mod kubelet;
pub mod machine;
pub mod node;
pub mod orders;
pub mod pace;
pub mod pod;
pub mod replica_sets;
pub mod report;
pub mod roster;
pub mod seed;
pub mod usage;
pub mod workload;

pub use fleet::{Fleet, FleetError};
pub use koordlet::Koordlet;
pub use kubelet::Kubelet;
pub use node::HollowNode;
pub use replica_sets::ReplicaSets;
pub use roster::Roster;
pub use seed::Seed;
pub use usage::UsageModel;
