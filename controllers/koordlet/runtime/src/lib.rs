//! The node agent: [`Agent`] decides, reads and writes the files of the node, and asks the outside; what is around it in this crate is that outside.
//!
//! Read first: [`Agent`], [`Input`] and [`Effect`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod agent;
pub mod audit;
mod called;
pub mod capability;
mod container_stopper;
mod cookies;
pub mod delivery;
mod disk_programs;
mod durations;
mod exchange;
mod gpus;
mod host;
mod kubelet;
mod kubelet_client;
mod metrics;
mod node_readers;
mod objects;
mod pages;
mod perf_counters;
mod resctrl_groups;
mod series;
mod settings;
mod shell;
mod terway_files;
pub mod traffic;

pub use agent::{Agent, Now, WantedFiles};
pub use container_stopper::{RuntimeEndpoints, Runtimes};
pub use cookies::{CoreScheduling, KernelCookies};
pub use disk_programs::disks_by_programs;
pub use exchange::{Effect, Input, KubeletFailure, KubeletPath, Object};
pub use gpus::{GpuState, SharedGpus};
pub use host::{DriverSource, Host, Interfaces, cgroup_version};
pub use kubelet_client::KubeletClient;
pub use metrics::{Measures, metrics};
pub use node_readers::NodeReaders;
pub use objects::{ClaimObject, ClaimVolumes, DeviceObject, Identity, Kept, MetricObject, SloObject, TopologyObject};
pub use pages::{audit_pages, node_pages};
pub use series::Series;
pub use settings::{EvictionSettings, Features, Intervals, KubeletSettings, PredictionSettings, Settings};
pub use shell::{COMPONENT, Feed, Worker, install};
